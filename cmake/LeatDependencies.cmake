# What leat links, each as an imported target.  Debian's package of each: tools/packages.
find_package(Threads REQUIRED)
# `pip install .` shows what CMake prints only if it fails: one message names all packages that are missing.
if(DEFINED SKBUILD AND NOT LEAT_FEED_ONLY)
  set(missing "")
  find_package(PkgConfig)
  set(modules "jansson>=2.13 libjansson-dev" "zlib zlib1g-dev" "libzstd libzstd-dev" "hdf5-serial libhdf5-dev"
    "libxxhash>=0.8 libxxhash-dev" "libmd libmd-dev")
  if(LEAT_PICTURES)
    list(APPEND modules "libjpeg libjpeg62-turbo-dev" "libpng libpng-dev" "libwebp libwebp-dev" "libtiff-4>=4.5 libtiff-dev")
  endif()
  foreach(needed IN LISTS modules)
    string(REPLACE " " ";" needed "${needed}")
    list(GET needed 0 module)
    list(GET needed 1 package)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(leat_has_${package} QUIET ${module})
    endif()
    if(NOT leat_has_${package}_FOUND)
      string(APPEND missing " ${package}")
    endif()
  endforeach()
  if(NOT PKG_CONFIG_FOUND)
    set(missing " pkgconf${missing}")
  endif()
  find_library(DNNL_LIBRARY dnnl)
  if(LEAT_ONEDNN AND NOT DNNL_LIBRARY)
    string(APPEND missing " libdnnl-dev")
  endif()
  find_library(GIF_LIBRARY gif)
  if(LEAT_PICTURES AND NOT GIF_LIBRARY)
    string(APPEND missing " libgif-dev")
  endif()
  if(missing)
    message(FATAL_ERROR "leat needs libraries that were not found.  Debian's packages of them:\n"
      "    apt install${missing}\n"
      "leat.Feed alone needs none of them:\n"
      "    pip install . -C cmake.define.LEAT_FEED_ONLY=ON")
  endif()
endif()
if(LEAT_FEED_ONLY)
  return()
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson>=2.13)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5-serial)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # its functions are inlined: there is nothing to link
pkg_check_modules(libmd REQUIRED IMPORTED_TARGET libmd) # of the command alone
pkg_check_modules(xxhash REQUIRED libxxhash>=0.8) # its header alone

# The libraries of picture formats, as the target leat_pictures.
add_library(leat_pictures INTERFACE)
if(LEAT_PICTURES)
  pkg_check_modules(pictures REQUIRED IMPORTED_TARGET libjpeg libpng libwebp libwebpdemux)
  pkg_check_modules(tiff REQUIRED IMPORTED_TARGET libtiff-4>=4.5) # apart: its own folder has precedence, if there is one
  find_path(GIF_INCLUDE_DIR gif_lib.h REQUIRED) # giflib has no .pc file
  find_library(GIF_LIBRARY gif REQUIRED)
  target_include_directories(leat_pictures SYSTEM INTERFACE ${GIF_INCLUDE_DIR})
  target_link_libraries(leat_pictures INTERFACE PkgConfig::tiff PkgConfig::pictures ${GIF_LIBRARY})
endif()

if(LEAT_ONEDNN)
  find_package(OpenMP REQUIRED COMPONENTS C)
  # oneDNN's own CMake package asks for OpenCL, which leat does not use.
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  add_library(leat_dnnl INTERFACE)
  target_include_directories(leat_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(leat_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_C)
endif()

# The headers of CUDA, cuBLASLt and cuDNN.  With LEAT_CUDA the library has the CUDA backend; without it, the tests still run the
# backend on a simulated GPU where these headers are found.  Nothing of CUDA is linked: it is loaded at run time.
find_path(LEAT_CUDA_INCLUDE_DIR cudnn.h HINTS /usr/local/cuda/include ENV CUDA_PATH PATH_SUFFIXES include)
if(LEAT_CUDA)
  find_program(LEAT_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin REQUIRED)
  if(NOT LEAT_CUDA_INCLUDE_DIR)
    message(FATAL_ERROR "LEAT_CUDA needs the headers of cuDNN 9: cudnn.h was not found; set LEAT_CUDA_INCLUDE_DIR")
  endif()
endif()

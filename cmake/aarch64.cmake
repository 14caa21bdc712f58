# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit Arm with Debian's compiler; LEAT_SYSROOT is a folder with Debian's arm64 packages unpacked, and
# tests run under qemu.  Used by tools/test-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LEAT_SYSROOT)
set(CMAKE_SYSROOT ${LEAT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${LEAT_SYSROOT})
# CMake forgets CMAKE_LIBRARY_ARCHITECTURE, since it cannot see the folder in what this compiler prints.
set(CMAKE_LIBRARY_PATH ${LEAT_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_INCLUDE_PATH ${LEAT_SYSROOT}/usr/include/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${LEAT_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${LEAT_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${LEAT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LEAT_SYSROOT})

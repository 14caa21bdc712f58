# SPDX-License-Identifier: Apache-2.0
# The part of leat's bash completion that is the same for any table: what is completed, and how.  src/cli/help/completion.c
# writes _leat_members and _leat_of before it.

# Sets REPLY to a word as the shell would pass it on: without its opening quote or its backslashes.
_leat_plain() {
    case $1 in
    \'*) REPLY=${1#?} ;;
    \"*) REPLY=${1#?} REPLY=${REPLY//\\/} ;;
    *) REPLY=${1//\\/} ;;
    esac
}

# _leat_paths BEFORE PATH [d]: files and folders, or folders alone, that begin with PATH; each with BEFORE in front.
# The shell expands no ~ within a word, so it is expanded here.
_leat_paths() {
    local path=$2 found
    case $path in \~ | \~/*) path=$HOME${path#\~} ;; esac
    while IFS= read -r -d '' found; do
        if [ -d "$found" ]; then
            found=$found/
        elif [ "${3-}" = d ]; then
            continue
        fi
        COMPREPLY+=("$1$found")
    done < <(
        shopt -s nullglob
        for found in "$path"*; do printf '%s\0' "$found"; done
    )
    compopt -o filenames
}

# _leat_spec SPEC: the kinds of data, then paths with commas between them.  More may follow each.
_leat_spec() {
    local paths=${1#*:} before=''
    compopt -o nospace
    case $1 in
    *:*\?*) ;; # options of the data
    *:*)
        case $paths in *,*) before=${paths%,*}, ;; esac
        _leat_paths "${1%%:*}:$before" "${paths##*,}"
        ;;
    *) mapfile -t COMPREPLY < <(compgen -W 'idx: npy: npz: plugin:' -- "$1") ;;
    esac
}

_leat_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# _leat_has LIST WORD
_leat_has() {
    case " $1 " in *" $2 "*) return 0 ;; esac
    return 1
}

_leat_value() {
    if _leat_has "$specs" "$option"; then
        _leat_spec "$value"
    elif _leat_has "$files" "$option"; then
        _leat_paths '' "$value"
    elif _leat_has "$folders" "$option"; then
        _leat_paths '' "$value" d
    fi
}

_leat_operand() {
    case $operand in
    spec) _leat_spec "$value" ;;
    file) _leat_paths '' "$value" ;;
    words) _leat_words "$words" "$value" ;;
    esac
}

# Completes `value`, the last of `line`: the words after leat.
_leat_line() {
    local command=${line[0]} members words operand specs files folders others flags last
    if [ "${#line[@]}" = 1 ]; then
        _leat_words "$(_leat_members '') --help --version" "$value"
        return
    fi
    members=$(_leat_members "$command")
    if [ -n "$members" ] && [ "${#line[@]}" = 2 ]; then
        _leat_words "$members --help" "$value"
        return
    fi
    last=${line[-2]}
    [ -z "$members" ] || command="$command ${line[1]}"
    _leat_of "$command" || return 0
    if [ "$command" = help ] && [ "${#line[@]}" = 3 ]; then
        words=$(_leat_members "$last")
    fi
    case $value in
    --*=*)
        option=${value%%=*}
        before=$option=
        value=${value#*=}
        _leat_value
        return
        ;;
    esac
    if _leat_has "$specs $files $folders $others" "$last"; then
        option=$last
        _leat_value
        return
    fi
    case $value in
    -*) _leat_words "$specs $files $folders $others $flags" "$value" ;;
    *) _leat_operand ;;
    esac
}

# readline cuts words at : and =, so that npz:file and --out=folder are three words each.  They are joined here, and of
# what is found only the part that stands for the last of the three is given back.
_leat() {
    local cur=${COMP_WORDS[COMP_CWORD]} line=() word joined='' keep value option='' before='' i
    COMPREPLY=()
    for ((i = 1; i <= COMP_CWORD; ++i)); do
        word=${COMP_WORDS[i]}
        if [ "${#line[@]}" -gt 0 ] && [[ -n $joined || $word == [:=]* ]]; then
            line[-1]+=$word
        else
            line+=("$word")
        fi
        joined=
        [[ $word != [:=]* ]] || joined=yes
    done
    [[ $cur != [:=]* ]] || cur=
    keep=${line[-1]}
    keep=${keep:0:${#keep}-${#cur}}
    _leat_plain "$keep"
    keep=$REPLY
    _leat_plain "$cur"
    value=$keep$REPLY
    _leat_line
    for i in "${!COMPREPLY[@]}"; do
        word=$before${COMPREPLY[i]}
        word=${word:${#keep}}
        # readline puts the slash behind what is a folder's name by itself, and leaves a quote open there.
        if [ -d "$word" ]; then
            word=${word%/}
        elif [[ $word == */ ]]; then
            compopt -o nospace
        fi
        COMPREPLY[i]=$word
    done
}
complete -F _leat leat

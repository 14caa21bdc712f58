# SPDX-License-Identifier: Apache-2.0
# The part of leat's bash completion that does not depend on the table of commands.  The build puts the functions
# _leat_members and _leat_of, which src/cli/help/completion.c makes from the table, in front of it.

# Sets REPLY to the word without its opening quote and its backslashes, as the shell would pass it to a program.
_leat_plain() {
    case $1 in
    \'*) REPLY=${1#?} ;;
    \"*) REPLY=${1#?} REPLY=${REPLY//\\/} ;;
    *) REPLY=${1//\\/} ;;
    esac
}

# _leat_paths BEFORE PATH [d]: offers the files and folders (with d, only the folders) that begin with PATH, each with
# BEFORE in front.  Expands ~, since the shell does not expand it inside a word.
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

# _leat_spec SPEC: offers the kinds of data, or after a kind, paths separated by commas.  Adds no blank, since more may
# follow.
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

# _leat_has LIST WORD: succeeds if the list contains the word.
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

# Completes `value`, the last word of `line`, which holds the words after leat.
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

# The completion function.  readline splits words at : and =, so npz:file and --out=folder are three words each.  The
# function joins the three words, completes the whole, and returns only the part that replaces the last of the three.
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
        # readline itself appends the slash to a folder's name, and leaves a quote open after it.
        if [ -d "$word" ]; then
            word=${word%/}
        elif [[ $word == */ ]]; then
            compopt -o nospace
        fi
        COMPREPLY[i]=$word
    done
}
complete -F _leat leat

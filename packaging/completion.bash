# Completes the command line of terse in bash.

_terse_files() {
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_terse() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= other
    COMPREPLY=()
    # Bash makes three words of --engine=zstd.
    if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    case ${COMP_WORDS[1]} in
        gzip | gunzip)
            if [ "$COMP_CWORD" -gt 1 ]; then
                case $before:$word in
                    --engine:*) mapfile -t COMPREPLY < <(compgen -W 'deflate libdeflate zlib-rs rows isal zstd brotli cuda' -- "$word"); return ;;
                    --input:* | --output:* | --config:* | -f:* | -o:*) _terse_files -f "$word"; return ;;
                    -p:* | -S:* | --processes:* | --suffix:* | --level:*) return ;;
                    *:--*) words='--stdout --decompress --force --help --keep --list --license --no-name --name --quiet --recursive --suffix=
                        --test --verbose --version --fast --best --level= --processes= --gzip --zstd --br --engine= --engines --config=
                        --input= --output= --ascii --synchronous' ;;
                    *:-*) words='-c -d -f -h -k -l -L -n -N -q -r -S -t -v -V -1 -2 -3 -4 -5 -6 -7 -8 -9 -p -a' ;;
                    *) _terse_files -f "$word"; return ;;
                esac
                mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
                case ${COMPREPLY[*]} in *=) compopt -o nospace 2> /dev/null ;; esac
                return
            fi
            ;;
        check)
            if [ "$COMP_CWORD" -gt 1 ]; then
                case $word in -*) mapfile -t COMPREPLY < <(compgen -W --json -- "$word") ;; *) _terse_files -f "$word" ;; esac
                return
            fi
            ;;
        top)
            [ "$COMP_CWORD" -gt 1 ] && { mapfile -t COMPREPLY < <(compgen -W --once -- "$word"); return; }
            ;;
        health)
            [ "$COMP_CWORD" -eq 1 ] || return
            ;;
    esac
    for other in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [ "$other" = -- ]; then _terse_files -f "$word"; return; fi
    done
    case $before in
        -f | -p | -x) _terse_files -f "$word"; return ;;
        -C | --tls-dir) _terse_files -d "$word"; return ;;
        --console | --log) words=off ;;
        --to | --listen | -S | -m | -n | -N | -L | -cc) return ;;
        -sf | -st) words=$(pgrep -x 'terse|haproxy' 2> /dev/null) ;;
        *)
            words='-f -c -C -V -q -h --help -v --version -vv --to --listen --tls-dir --console --log --print -W -Ws -S -D -p -sf -st -x -m
                -n -N -L -4 -cc -d -db -dW -vq -vqs -vqb -dK -dKhelp -dKmanual -dS -dF -dR -dD -dZ -dV -dM -dI -dG -de -dp -dk -dv -dT --'
            [ "$COMP_CWORD" -ne 1 ] || words="check gzip gunzip health top $words"
            ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _terse terse

#compdef terse
# Completes the command line of terse in zsh.

_terse_gzip() {
    _arguments -s -S \
        '(-c --stdout)'{-c,--stdout}'[write on standard output, keep the files]' \
        '(-d --decompress)'{-d,--decompress}'[decompress]' \
        '(-f --force)'{-f,--force}'[overwrite, follow links, write to terminals]' \
        '(-h --help)'{-h,--help}'[print the options]' \
        '(-k --keep)'{-k,--keep}'[keep the files]' \
        '(-l --list)'{-l,--list}'[tell sizes and names of compressed files]' \
        '(-L --license)'{-L,--license}'[print the licence]' \
        '(-n --no-name)'{-n,--no-name}'[neither store nor restore name and time]' \
        '(-N --name)'{-N,--name}'[store name and time, and restore them]' \
        '(-q --quiet)'{-q,--quiet}'[no warnings, no progress]' \
        '(-r --recursive)'{-r,--recursive}'[folders too]' \
        '(-S --suffix)'{-S+,--suffix=}'[the end of compressed names]:suffix' \
        '(-t --test)'{-t,--test}'[decompress, check, write nothing]' \
        '(-v --verbose)'{-v,--verbose}'[tell names and ratios]' \
        '(-V --version)'{-V,--version}'[print the version]' \
        '(-p --processes)'{-p+,--processes=}'[threads that compress]:number' \
        '(-a --ascii)'{-a,--ascii}'[accepted, changes nothing]' \
        -{1..9}'[level]' \
        '--fast[level 1]' '--best[level 9]' '--level=[level]:level' \
        '--gzip[the format gzip]' '--zstd[the format zstd]' '--br[the format brotli]' \
        '--engine=[who compresses]:engine:(deflate libdeflate zlib-rs rows isal zstd brotli cuda)' \
        '--engines[list the engines]' \
        '--config=[a configuration with engine sections]:file:_files' \
        '--input=[read this file, and keep it]:file:_files' \
        '--output=[write this file]:file:_files' \
        '--synchronous[accepted, changes nothing]' \
        '*:file:_files'
}

_terse() {
    if (( CURRENT > 2 )); then
        case $words[2] in
            gzip | gunzip) shift words; (( CURRENT-- )); _terse_gzip; return ;;
            check) shift words; (( CURRENT-- )); _arguments '--json[for programs]' '*:file:_files'; return ;;
            health | top) _message 'URL'; return ;;
        esac
    fi
    # All words behind -- are files.
    if (( ${words[(I)--]} && ${words[(I)--]} < CURRENT )); then _files; return; fi
    local -a first
    if (( CURRENT == 2 )); then first=('1: :(check gzip gunzip health top)'); fi
    _arguments \
        '*-f[reads a file or a folder]:file:_files' \
        '-c[checks the configuration]' \
        '-C[goes there before it reads files]:folder:_files -/' \
        '-V[says more]' '-q[says nothing]' \
        {-h,--help}'[lists all options]' {-v,--version}'[prints the version]' '-vv[prints the version and what is built in]' \
        '*--to[a server]:address' '--listen[listens there]:address' \
        '--tls-dir[the folder of certificates]:folder:_files -/' \
        '--console[shows the console there]:address:(off)' '--log[logs no requests]:log:(off)' '--print[prints the file]' \
        '-W[starts a master]' '-Ws[starts a master for systemd]' '*-S[opens the command line of the master]:address' \
        '-D[goes to the background]' '-p[the file of the process number]:file:_files' \
        '-sf[tells processes to finish]:*:process:_pids' '-st[tells processes to stop]:*:process:_pids' \
        '-x[takes listening sockets over]:socket:_files' \
        '-m[limits the memory]:MiB' '-n[limits the connections]:number' '-N[limits the connections of each proxy]:number' \
        '-L[the local name]:name' '-4[asks name servers for IPv4 alone]' \
        '-cc[evaluates a condition]:condition' '-d[stays in the foreground and says more]' '-db[stays in the foreground]' \
        '-dW[does not start with warnings]' '-vq[prints the number of the version]' '-vqs[the same without what follows a dash]' \
        '-vqb[its first two numbers]' '-dKhelp[lists classes of keywords]' '-dKmanual[prints the reference]' \
        '-dS[does not use splice]' '-dF[does not forward past the stream]' '-dR[shares one socket among the workers]' \
        '-dD[lets .diag lines speak]' '-dZ[copies what it forwards]' '-dV[trusts any certificate of servers]' \
        -d{M,I,G,e,p,k,v,T}'[accepted, changes nothing]' \
        $first
}

_terse "$@"

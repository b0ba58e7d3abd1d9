#!/bin/bash
# Stands for curl on a node: plain HTTP by bash alone, as the startup script asks for it. Loading curl's libraries takes
# five times as long, and a boot asks 30 times; one test of each subject boots with the real one.
{ printf 'curl'; printf '\037%s' "$@"; printf '\n'; } >>"$FAKE/calls"

method=GET headers='' body='' url='' format='' output=yes fails='' with_headers=''
while (($#)); do
  case $1 in
    --silent | --show-error) ;;
    --connect-timeout | --max-time) shift ;;
    --fail) fails=yes ;;
    --include) with_headers=yes ;;
    --output) shift; output='' ;; # /dev/null
    --write-out) shift; format=$1 ;;
    --request) shift; method=$1 ;;
    --data) shift; body=$1 ;;
    --header)
      shift
      if [[ $1 == @- ]]; then IFS= read -r line || true; else line=$1; fi
      headers+="$line"$'\r\n'
      ;;
    --*) echo "fake_curl.sh knows no $1" >&2; exit 2 ;;
    *) url=$1 ;;
  esac
  shift
done
if [[ -n $body ]]; then
  [[ $method != GET ]] || method=POST
  LC_ALL=C
  headers+="Content-Length: ${#body}"$'\r\n'
fi

if [[ $url == */health && -f $FAKE/curl-health.fail ]]; then
  read -r left <"$FAKE/curl-health.fail"
  if ((left)); then
    echo $((left - 1)) >"$FAKE/curl-health.fail"
    cat "$FAKE/curl-health.says" >&2
    exit 1
  fi
fi
address=${url#http://}
host=${address%%/*}
if ! { exec 3<>"/dev/tcp/${host%:*}/${host#*:}"; } 2>/dev/null; then
  echo "curl: (7) Failed to connect to ${host%:*} port ${host#*:}" >&2
  exit 7
fi
printf '%s /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n%s' \
  "$method" "${address#*/}" "$host" "$headers" "$body" >&3
read -r _ status _ <&3
head="HTTP/1.1 $status"$'\r\n'
while IFS= read -r line <&3 && [[ $line != $'\r' ]]; do head+="$line"$'\n'; done
IFS= read -r -d '' answer <&3 || true
if [[ -n $fails ]] && ((status >= 400)); then
  echo "curl: (22) The requested URL returned error: $status" >&2
  exit 22
fi
if [[ -n $output ]]; then
  [[ -z $with_headers ]] || printf '%s\r\n' "$head"
  printf '%s' "$answer"
fi
if [[ -n $format ]]; then printf '\n%s' "$status"; fi

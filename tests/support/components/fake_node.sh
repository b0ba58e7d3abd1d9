#!/bin/sh
# Stands for docker, gsutil, apt-get, curl, python3 and others on a node, by the name that it is called by.
# FAKE holds its state: STEP.fail (how often that step fails), STEP.says (with which words), calls (one line a call), now
# (Unix seconds of its clock).
name=${0##*/}
{ printf '%s' "$name"; printf '\037%s' "$@"; printf '\n'; } >>"$FAKE/calls"

step=$name
case $name in
  docker | apt-get) for word; do case $word in -*) ;; *) step=$name-$word; break ;; esac; done ;;
  gsutil)
    while [ "${1#-}" != "$1" ]; do shift; done
    step=$name-$1
    case "${2#-}${3#-}" in rgs://*cache*) step=$name-restore ;; esac
    case ${4:-} in gs://*) step=$name-save ;; esac
    ;;
  curl) for word; do case $word in */health) step=curl-health ;; esac; done ;;
esac

if [ "$step ${4:-}" = 'docker-run collector' ]; then step=docker-run-collector; fi

if [ -f "$FAKE/$step.fail" ]; then
  read -r left <"$FAKE/$step.fail"
  if [ "$left" -gt 0 ]; then
    echo $((left - 1)) >"$FAKE/$step.fail"
    cat "$FAKE/$step.says" >&2
    exit 1
  fi
fi

local_path() {
  case $1 in gs://*) printf '%s' "$FAKE/bucket/${1#gs://}" ;; *) printf '%s' "$1" ;; esac
}

case $step in
  curl | curl-health) exec "$REAL_CURL" "$@" ;;
  date) if [ -f "$FAKE/now" ] && [ "$1" = +%s ]; then cat "$FAKE/now"; else exec /bin/date "$@"; fi ;;
  sleep) if [ -f "$FAKE/now" ]; then echo $(($(cat "$FAKE/now") + $1)) >"$FAKE/now"; fi ;;
  python3) exec "$REAL_PYTHON" -S "$@" ;;
  wget) echo a key ;;
  docker-login)
    mkdir -p "$DOCKER_CONFIG" # as the real one keeps it
    cat >"$DOCKER_CONFIG/config.json"
    cp "$DOCKER_CONFIG/config.json" "$FAKE/login"
    ;;
  docker-pull) : >"$FAKE/pulled" ;;
  docker-image) [ -f "$FAKE/pulled" ] ;;
  docker-run)
    while [ "$1" != --env-file ]; do shift; done
    cp "$2" "$FAKE/environment"
    stat -c %a "$2" >"$FAKE/environment.mode"
    : >"$FAKE/running"
    rm -f "$FAKE/stopped"
    ;;
  docker-start | docker-restart)
    : >"$FAKE/running"
    rm -f "$FAKE/state" "$FAKE/stopped"
    if [ -f "$FAKE/start.state" ]; then cp "$FAKE/start.state" "$FAKE/state"; fi
    ;;
  docker-stop)
    rm -f "$FAKE/running"
    : >"$FAKE/stopped"
    ;;
  docker-inspect)
    if [ -f "$FAKE/stopped" ]; then echo exited 0 137; elif [ -f "$FAKE/state" ]; then cat "$FAKE/state"; else
      echo running 0 0
    fi
    ;;
  docker-logs) cat "$FAKE/logs" ;;
  gsutil-rsync | gsutil-restore | gsutil-save)
    from=$(local_path "$3")
    to=$(local_path "$4")
    if [ ! -d "$from" ]; then
      echo "CommandException: arg ($3) does not name a directory, bucket, or bucket subdir." >&2
      exit 1
    fi
    mkdir -p "$to"
    cp -r "$from/." "$to"
    ;;
  gsutil-du) find "$(local_path "$3")" -type f -printf '%s\n' | awk -v url="$3" '{ sum += $1 } END { print sum, " ", url }' ;;
esac

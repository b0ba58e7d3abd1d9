#!/bin/bash
# The boot of a node: a machine with TPUs or GPUs that runs one vLLM container.
#
# What differs it reads from the metadata attributes bezel-*, none of which is secret. A machine gets the text without
# comments, and without what is between `# only KIND` and `# end KIND` of a kind that it is not (startup_script.py):
# tpu, gpu, packages (installs some), notice (of the lease's end), collector (of the server's series). The whole text
# runs on each kind as well. It tells
# how far it is by guest attributes (bezel/<phase>) and on the serial console. A reboot runs it again: it then finds
# the image, and starts the container anew. Once the container serves, this never ends: it starts, stops and restarts
# the container as the attribute bezel-container asks, and tells how it is by the guest attribute bezel/container. Where
# the attribute bezel-end-notice names the run duration, it writes one entry to Cloud Logging before the lease ends.
#
# Owns what happens from the power button to the first healthy answer, the container's life, the start of what collects
# its series, and the notice of the lease's end. Leaves out who waits for any of them.
#
# Environment, for tests and the embedded cloud only: BEZEL_ROOT (a folder in place of /), GCE_METADATA_HOST and
# GOOGLE_<API>_CUSTOM_ENDPOINT as Google's own clients read them.
set -euo pipefail
set +x # a trace would show what is secret
export PATH="$PATH:/snap/bin" # where Ubuntu's images keep gsutil
export HOME=${HOME:-/root}    # which a unit of systemd may lack, and gsutil needs

readonly ROOT=${BEZEL_ROOT:-}
readonly METADATA="http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1"
readonly SECRETS=${GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT:-https://secretmanager.googleapis.com/v1/}
readonly STORAGE=${GOOGLE_STORAGE_CUSTOM_ENDPOINT:-https://storage.googleapis.com/storage/v1/}
readonly LOGGING=${GOOGLE_LOGGING_CUSTOM_ENDPOINT:-https://logging.googleapis.com/v2/}
readonly RUN="$ROOT/run/bezel"            # in memory: secrets on their way, gone when this ends
readonly CACHE=/var/cache/bezel/compile   # what the compiler keeps
# only packages
# only gpu
readonly NVIDIA=https://nvidia.github.io/libnvidia-container
# end gpu
# end packages
readonly CONTAINER=vllm
readonly RESTARTS=10        # of the container, all its life long
readonly BOOT_RESTARTS=2    # before it was healthy once: what fails three times fails always, and the lease costs
readonly HEALTHY_SECONDS=5400
readonly LOOK_SECONDS=60                  # between two looks at the container, where no request comes
readonly DONE="$ROOT/var/lib/bezel/request" # on the disk: the last request, which a reboot must not repeat
readonly FIRST_BOOT="$ROOT/var/lib/bezel/first-boot" # on the disk: Unix seconds, from which the end of the lease counts
# only notice
readonly NOTICE="$ROOT/var/lib/bezel/end-notice"     # on the disk once the notice of the end is written
readonly NOTICE_SECONDS=1800                         # before the end, or a quarter of a shorter lease
readonly NOTICE_ATTEMPTS=10                          # one with each look, so that no request waits for them
# end notice
# only collector
readonly COLLECTOR="$ROOT/var/lib/bezel/collector"   # on the disk: the configuration of what collects the series
# end collector

phase=network
told=''       # whether the user knows why this ends
said=''       # what the last command of `retry` said
private=()    # values that no message may hold
first_boot=0  # Unix seconds, where the disk does not hold it
noticed=''    # whether the notice of the end is written, or given up
attempts=0    # to write it

say() {
  TZ=UTC printf '%(%FT%TZ)T bezel: %s\n' -1 "$(redacted "$*")"
}

redacted() {
  local text=$1 value
  for value in ${private[@]+"${private[@]}"}; do
    text=${text//"$value"/***}
  done
  printf '%s' "$text"
}

# report STATE DETAIL: the phase's guest attribute, and a line on the console.
report() {
  local detail=${2//$'\n'/ } value
  say "$phase $1: $detail"
  printf -v value '{"state": "%s", "at": %(%s)T, "detail": "%s"}' "$1" -1 "$(json_text "$detail")"
  write_attribute "$phase" "$value" || true
}

# json_text TEXT: the inside of a JSON text, bounded and without what is private.
json_text() {
  local text
  text=$(redacted "${1:0:1000}")
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  printf '%s' "${text//[[:cntrl:]]/ }"
}

# write_attribute NAME VALUE: a guest attribute of this machine.
write_attribute() {
  retry 5 http --request PUT --header 'Metadata-Flavor: Google' --data "$2" \
    "$METADATA/instance/guest-attributes/bezel/$1" && return
  say "the guest attribute bezel/$1 could not be written: $(last_line)"
  return 1
}

fail() {
  told=yes
  report failed "$1"
  exit 1
}

finish() {
  local -r status=$?
  rm -rf "$RUN"
  if ((status != 0)) && [[ -z $told ]]; then
    told=yes
    report failed "the startup script ended with status $status: nothing serves; see the serial console"
  fi
  exit "$status"
}

# retry TIMES COMMAND...: until it succeeds, waiting longer each time; its output is in $said.
retry() {
  local -r times=$1
  local pause=2 attempt
  shift
  for ((attempt = 1; ; attempt++)); do
    if said=$("$@" 2>&1); then return 0; fi
    if ((attempt == times)); then return 1; fi
    say "$1 failed, attempt $attempt of $times ($(last_line)); the next one in $pause s"
    sleep "$pause"
    pause=$((pause < 32 ? pause * 2 : 32))
  done
}

last_line() {
  local text=${said%"${said##*[![:space:]]}"}
  text=${text##*$'\n'}
  printf '%.400s' "${text:-no output}"
}

# http CURL-ARGUMENT...: the body of a good answer; else status 1 and a line that says why.
http() {
  local answer status
  answer=$(curl --silent --show-error --connect-timeout 5 --max-time 30 --write-out '\n%{http_code}' "$@") ||
    { printf '%s' "${answer%$'\n'*}"; return 1; }
  status=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  if [[ $status == 2* ]]; then printf '%s' "$answer" && return; fi
  # An error of Google's APIs has its message in JSON; what else there is may be a page of HTML.
  [[ $answer =~ \"message\":[[:space:]]*\"([^\"]+)\" ]] || true
  printf 'HTTP %s %s\n' "$status" "${BASH_REMATCH[1]:-}"
  return 1
}

metadata() {
  http --header 'Metadata-Flavor: Google' "$METADATA/$1"
}

access_token() {
  local answer
  answer=$(metadata instance/service-accounts/default/token) || { printf '%s' "$answer"; return 1; }
  [[ $answer =~ \"access_token\":[[:space:]]*\"([^\"]+)\" ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# secret ID: the value of its newest version. The token goes to curl by a pipe, never as an argument.
secret() {
  local token answer
  token=$(access_token) || { printf '%s' "$token"; return 1; }
  answer=$(printf 'Authorization: Bearer %s' "$token" |
    http --header @- "${SECRETS}projects/$project/secrets/$1/versions/latest:access") ||
    { printf '%s' "$answer"; return 1; }
  [[ $answer =~ \"data\":[[:space:]]*\"([^\"]+)\" ]] && printf '%s' "${BASH_REMATCH[1]}" | base64 --decode
}

# The attributes as texts ended by NUL, lists after their length; or what is wrong with them, and status 1.
readonly INPUTS='
import json, sys
given = json.load(sys.stdin)
names = ("image", "weights", "model-folder", "compile-cache", "port", "device", "packages", "end-notice")
words, problems = [given.get("bezel-" + name, "") for name in names], []
image, device, packages, notice = words[0], *words[5:]
if "@sha256:" not in image:
    problems.append(f"bezel-image is {image!r}, which names no digest: two boots could run different images; name one")
if device not in ("tpu", "gpu"):
    problems.append(f"bezel-device is {device!r}: the container would find no accelerator; make it tpu or gpu")
if packages not in ("", "docker"):
    problems.append(f"bezel-packages is {packages!r}: only docker can be installed; leave the others out")
for name, kind in (("arguments", list), ("environment", dict), ("secrets-by-name", dict)):
    try:
        content = json.loads(given.get("bezel-" + name, ""))
    except ValueError:
        content = None
    items = [word for pair in content.items() for word in pair] if isinstance(content, dict) else content
    if not isinstance(content, kind) or any(not isinstance(word, str) or "\0" in word for word in items):
        what = "list" if kind is list else "object"
        problems.append(f"bezel-{name} is no JSON {what} of texts: no container can be started; make it one")
        continue
    words += [str(len(items)), *items]
try:
    end = json.loads(notice or "null") or {}
    words[7:8] = [end["lease"], end["stack"], str(int(end["run_seconds"]))] if notice else ["", "", "0"]
except (ValueError, LookupError, TypeError):
    problems.append("bezel-end-notice is no JSON object of lease, stack and run_seconds: no alert would open before "
                    "the lease ends; make it one, or leave it out")
if problems:
    sys.exit("; ".join(problems))
sys.stdout.write("".join(word + "\0" for word in words))'

read_inputs() {
  local -a words
  local place=10
  retry 8 metadata 'instance/attributes/?recursive=true&alt=json' ||
    fail "the metadata attributes cannot be read ($(last_line)): no container can be started; start the node again"
  if ! said=$(printf '%s' "$said" | python3 -c "$INPUTS" 2>&1 >"$RUN/inputs"); then
    fail "the metadata attributes are wrong: $said"
  fi
  mapfile -d '' -t words <"$RUN/inputs"
  image=${words[0]} weights=${words[1]} model_folder=${words[2]:-/dev/shm/models/hub} compile_cache=${words[3]}
  port=${words[4]} device=${words[5]} packages=${words[6]}
  lease=${words[7]} stack=${words[8]} run_seconds=${words[9]}
  arguments=("${words[@]:place+1:words[place]}")
  place=$((place + 1 + words[place]))
  environment=("${words[@]:place+1:words[place]}")
  place=$((place + 1 + words[place]))
  secret_ids=("${words[@]:place+1:words[place]}")
}

check_network() {
  phase=network
  report running 'asking the metadata server and the Google APIs'
  retry 8 access_token ||
    fail "the metadata server gives no token ($(last_line)): nothing can be read; give the node a service account"
  private+=("$said")
  retry 8 metadata project/project-id || fail "the metadata server does not name the project: $(last_line)"
  project=$said
  read_inputs
  # Any answer will do, a refusal too: it has come over the network.
  retry 6 curl --silent --show-error --output /dev/null --connect-timeout 5 --max-time 15 "$STORAGE" || fail \
    "the Google APIs do not answer ($(last_line)): neither image nor weights nor secrets can be read; turn on private
Google access of the node's subnetwork, or set network.nat: true"
  install_packages
  report 'done' 'the metadata server and the Google APIs answer'
}

install_packages() {
  # only packages
  if [[ -z $packages ]] || docker --version >/dev/null 2>&1; then return 0; fi
  report running 'installing docker'
  export DEBIAN_FRONTEND=noninteractive
  retry 4 install_docker ||
    fail "docker cannot be installed ($(last_line)): no container can run; set network.nat: true, or use
an image with docker"
  # end packages
}

# With GPUs also what hands them to containers, as NVIDIA packages it; only the machine's own image brings the driver.
install_docker() {
  # only packages
  local -a names=(docker.io)
  local key
  # only gpu
  if [[ $device == gpu ]]; then
    names+=(nvidia-container-toolkit)
    key=$(wget --quiet --timeout 30 --tries 1 --output-document - "$NVIDIA/gpgkey") || return 1
    printf '%s\n' "$key" | install -D -m 644 /dev/stdin "$ROOT/etc/apt/keyrings/nvidia.asc"
    printf 'deb [signed-by=/etc/apt/keyrings/nvidia.asc] %s/stable/deb/amd64 /\n' "$NVIDIA" |
      install -D -m 644 /dev/stdin "$ROOT/etc/apt/sources.list.d/nvidia.list"
  fi
  # end gpu
  apt-get -qq update && apt-get -qq --yes install "${names[@]}" || return 1
  # only gpu
  if [[ $device == gpu ]]; then
    nvidia-ctk --quiet runtime configure --runtime=docker && systemctl restart docker
  fi
  # end gpu
  # end packages
}

pull_image() {
  phase=image
  report running "pulling $image"
  retry 8 docker info || fail "docker does not answer ($(last_line)): no container can run; start the node again"
  if docker image inspect "$image" >/dev/null 2>&1; then
    report 'done' "$image is here already"
    return 0
  fi
  export DOCKER_CONFIG="$RUN/docker"
  retry 5 pull || fail "the image $image cannot be pulled ($(last_line)): nothing can run; see that it exists, that the
node's service account may read the repository (roles/artifactregistry.reader) and, for another registry than
Artifact Registry, that network.nat is true"
  rm -rf "$DOCKER_CONFIG"
  unset DOCKER_CONFIG
  report 'done' "$image"
}

pull() {
  local -r registry=${image%%/*}
  local token
  if [[ $registry == *.pkg.dev ]]; then
    token=$(access_token) || { printf '%s' "$token"; return 1; }
    printf '%s' "$token" | docker login --username oauth2accesstoken --password-stdin "https://$registry" || return 1
  fi
  docker pull --quiet "$image"
}

fetch_weights() {
  phase=weights
  mkdir -p "$ROOT$model_folder"
  if [[ -z $weights ]]; then
    report 'done' 'none in a bucket: the server downloads them from the hub'
    return 0
  fi
  report running "copying $weights"
  retry 4 gsutil -m -q rsync -r "$weights" "$ROOT$model_folder" ||
    fail "the weights $weights cannot be copied ($(last_line)): no model can be loaded; see that they are there and that
the node's service account may read the bucket (roles/storage.objectViewer)"
  if ! retry 4 gsutil -q du -s "$weights" || [[ ! $said =~ ([0-9]+)[[:space:]]+gs:// ]]; then
    fail "the size of $weights cannot be read ($(last_line)): the copy cannot be checked; start the node again"
  fi
  local -r wanted=${BASH_REMATCH[1]}
  local copied
  copied=$(bytes_in "$ROOT$model_folder")
  if [[ $copied != "$wanted" || ! -s $ROOT$model_folder/config.json ]]; then
    fail "$weights has $wanted bytes, the copy $copied, and a model has a config.json: the model would not load; copy
the whole model into the bucket and start the node again"
  fi
  report 'done' "$copied bytes"
}

bytes_in() {
  find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

start_container() {
  phase=compile
  local cache='no compile cache'
  mkdir -p "$ROOT$CACHE"
  if [[ -n $compile_cache ]]; then
    report running "restoring the compile cache from $compile_cache"
    # One that is not there, or cannot be read, costs time only.
    if retry 2 gsutil -m -q rsync -r "$compile_cache" "$ROOT$CACHE"; then
      cache="compile cache of $(bytes_in "$ROOT$CACHE") bytes"
    elif [[ $said == *'does not name a directory'* ]]; then
      cache='no compile cache yet'
    else
      cache="compile cache not restored: $(last_line)"
    fi
  fi
  report running "starting the container ($cache)"
  write_environment
  docker rm --force "$CONTAINER" >/dev/null 2>&1 || true # of an earlier boot
  retry 1 run_container || fail "the container cannot be started ($(last_line)): nothing serves; look at bezel-device
('$device') and at the image"
  rm -f "$RUN/environment"
  report 'done' "container started, $cache"
}

save_cache() {
  if [[ -z $compile_cache ]]; then return 0; fi
  if retry 3 gsutil -m -q rsync -r "$ROOT$CACHE" "$compile_cache"; then
    phase=compile report 'done' "compile cache kept in $compile_cache: $(bytes_in "$ROOT$CACHE") bytes"
  else
    phase=compile report 'done' "the compile cache cannot be written to $compile_cache ($(last_line)): the next lease
compiles anew; give the node's service account roles/storage.objectUser on this folder of the bucket"
  fi
}

# The container's variables, secrets among them, as a file that only root can read.
write_environment() {
  local -a pairs=("${environment[@]}") lines=()
  local place
  if [[ $device == tpu ]]; then
    # only tpu
    pairs+=(VLLM_XLA_CACHE_PATH "$CACHE")
    # end tpu
  else
    # only gpu
    pairs+=(VLLM_CACHE_ROOT "$CACHE")
    # end gpu
  fi
  if [[ -z $weights ]]; then pairs+=(HF_HOME "$model_folder"); fi
  for ((place = 0; place < ${#secret_ids[@]}; place += 2)); do
    retry 5 secret "${secret_ids[place + 1]}" ||
      fail "the secret ${secret_ids[place + 1]} cannot be read ($(last_line)): ${secret_ids[place]} would be missing;
see that it has a version and that the node's service account may read it (roles/secretmanager.secretAccessor)"
    private+=("$said")
    pairs+=("${secret_ids[place]}" "$said")
  done
  for ((place = 0; place < ${#pairs[@]}; place += 2)); do
    if [[ ${pairs[place + 1]} == *$'\n'* ]]; then
      fail "${pairs[place]} has more than one line: docker takes no such variable; give it in one line"
    fi
    lines+=("${pairs[place]}=${pairs[place + 1]}")
  done
  (umask 077 && printf '%s\n' "${lines[@]}" >"$RUN/environment")
}

run_container() {
  # only tpu
  local -a hardware=(--privileged --shm-size 10gb)
  # end tpu
  # only gpu
  if [[ $device == gpu ]]; then
    hardware=(--gpus all --ipc host)
  fi
  # end gpu
  # The entrypoint is named: of the images for TPUs it is a shell.
  docker run --detach --name "$CONTAINER" --restart "on-failure:$RESTARTS" --net host "${hardware[@]}" \
    --log-opt max-size=50m --log-opt max-file=3 --env-file "$RUN/environment" \
    --volume "$ROOT$CACHE:$CACHE" --volume "$ROOT$model_folder:$model_folder" \
    --entrypoint vllm "$image" serve "${arguments[@]}"
}

wait_until_healthy() {
  phase=healthy
  local waited=0 pause=10 state
  report running "waiting for /health, $HEALTHY_SECONDS s at most"
  until curl --silent --fail --output /dev/null --max-time 5 "http://127.0.0.1:$port/health"; do
    check_container
    notice_end
    if ((waited >= HEALTHY_SECONDS)); then
      show_last_words
      fail "vLLM does not answer /health after $waited s ($(last_line)): nothing serves; see the serial console"
    fi
    ((waited % 60)) || say "healthy: $waited s of $HEALTHY_SECONDS s, container $state"
    sleep "$pause"
    waited=$((waited + pause))
    pause=$((waited < 600 ? 10 : 30))
  done
  report 'done' 'vLLM answers /health'
}

# Sets $state of its caller; fails if the container has given up, or has failed too often for one that never served.
check_container() {
  local restarts code
  retry 3 docker inspect --format '{{.State.Status}} {{.RestartCount}} {{.State.ExitCode}}' "$CONTAINER" ||
    fail "the container $CONTAINER is gone ($(last_line)): nothing serves; start the node again"
  read -r state restarts code <<<"$said"
  if [[ $state == exited || $state == dead ]] || ((restarts > BOOT_RESTARTS)); then
    docker stop "$CONTAINER" >/dev/null 2>&1 || true
    show_last_words
    fail "vLLM ended with exit code $code before it served, $restarts restarts ($(last_line)): nothing serves; change
the arguments or the model as its last words say"
  fi
}

# The end of the container's log on the console; its last error is in $said.
show_last_words() {
  said=$(docker logs --tail 60 "$CONTAINER" 2>&1) || true
  say "the last lines of the container:"$'\n'"$said"
  local errors
  errors=$(printf '%s\n' "$said" | grep -E 'rror[:,]|RESOURCE_EXHAUSTED' | grep -v 'Engine core init') || errors=$said
  said=$errors
}

# only collector
# start_collector: the container that writes the server's series to Cloud Monitoring, of an image and with a configuration
# that are attributes. It fails nothing: the server serves without it as well.
start_collector() {
  local collector
  if ! retry 3 metadata instance/attributes/bezel-collector-image && [[ $said == *'HTTP 404'* ]]; then return 0; fi
  collector=$said
  docker rm --force collector >/dev/null 2>&1 || true # of an earlier boot
  if retry 3 write_collector && retry 3 timeout 300 docker pull --quiet "$collector" && retry 1 run_collector; then
    say "the collector writes the server's series to Cloud Monitoring"
  else
    say "the collector cannot be started ($(last_line)): the server serves, and no figure of it is kept; start the node
again, or set observability.metrics to false"
  fi
}

write_collector() {
  local -r placeholder='{zone}'
  local zone text
  zone=$(metadata instance/zone) || { printf '%s' "$zone"; return 1; }
  zone=${zone##*/}
  text=$(metadata instance/attributes/bezel-collector-configuration) || { printf '%s' "$text"; return 1; }
  mkdir -p "$COLLECTOR" && printf '%s\n' "${text//"$placeholder"/"$zone"}" >"$COLLECTOR/collector.yaml"
}

# What it stores is gone with the container: series are read in Cloud Monitoring. Only this machine reaches its port.
run_collector() {
  docker run --detach --name collector --restart unless-stopped --net host --memory 512m --cpus 1 \
    --log-opt max-size=10m --log-opt max-file=2 --tmpfs /prometheus --volume "$COLLECTOR:/etc/collector:ro" \
    "$collector" --config.file=/etc/collector/collector.yaml --storage.tsdb.path=/prometheus/data \
    --storage.tsdb.retention.time=2h --web.listen-address=127.0.0.1:9090
}
# end collector

# The lease begins with the first boot: a later one must not move its end.
remember_first_boot() {
  first_boot=$(date +%s)
  if [[ -s $FIRST_BOOT ]]; then return; fi
  if ! mkdir -p "${FIRST_BOOT%/*}" || ! printf '%s\n' "$first_boot" >"$FIRST_BOOT.new" ||
    ! mv "$FIRST_BOOT.new" "$FIRST_BOOT"; then
    say "the time of this boot cannot be stored in $FIRST_BOOT: the notice of the end of the lease would be late after a reboot"
  fi
}

# notice_end: the notice of the lease's end once it is due, if the attributes ask for one; it fails nothing.
notice_end() {
  # only notice
  if [[ -z $lease || -n $noticed ]]; then return 0; fi
  if [[ -e $NOTICE ]]; then
    noticed=yes
    return 0
  fi
  local began ends ahead
  read -r began 2>/dev/null <"$FIRST_BOOT" || began=''
  if [[ ! $began =~ ^[0-9]+$ ]]; then began=$first_boot; fi
  ends=$((began + run_seconds))
  ahead=$((run_seconds / 4 < NOTICE_SECONDS ? run_seconds / 4 : NOTICE_SECONDS))
  if (($(date +%s) < ends - ahead)); then return 0; fi
  attempts=$((attempts + 1))
  if said=$(write_notice "$began" "$ends" "$ahead" 2>&1); then
    noticed=yes
    say "the notice of the end of the lease is written to Cloud Logging"
    if ! mkdir -p "${NOTICE%/*}" || ! : >"$NOTICE"; then
      say "$NOTICE cannot be stored: a reboot would write the notice of the end again"
    fi
  elif ((attempts >= NOTICE_ATTEMPTS)); then
    noticed=yes
    say "the notice of the end of the lease cannot be written to Cloud Logging ($(last_line)): after $attempts attempts no
alert opens before the end; give the node's service account roles/logging.logWriter"
  else
    say "the notice of the end of the lease cannot be written to Cloud Logging, attempt $attempts of $NOTICE_ATTEMPTS
($(last_line)); the next one follows within $LOOK_SECONDS s"
  fi
  # end notice
}

# write_notice BEGAN ENDS AHEAD, Unix seconds: the entry. By its id and its time a second one is the same as the first.
write_notice() {
  # only notice
  local zone token ends due body
  zone=$(metadata instance/zone) || { printf '%s' "$zone"; return 1; }
  zone=${zone##*/}
  token=$(access_token) || { printf '%s' "$token"; return 1; }
  TZ=UTC printf -v ends '%(%FT%TZ)T' "$2"
  TZ=UTC printf -v due '%(%FT%TZ)T' "$(($2 - $3))"
  printf -v body '{"entries": [{"logName": "projects/%s/logs/bezel-lease", "severity": "WARNING", "timestamp": "%s", '\
'"insertId": "%s-ends-%s", "resource": {"type": "generic_node", "labels": {"project_id": "%s", "location": "%s", '\
'"namespace": "%s", "node_id": "%s"}}, "labels": {"lease": "%s", "stack": "%s"}, "jsonPayload": {"event": "lease-ends", '\
'"message": "The lease %s in %s ends at %s.", "lease": "%s", "stack": "%s", "zone": "%s", '\
'"ends_at": "%s"}}]}' "$project" "$due" "$lease" "$1" "$project" "$zone" "$stack" "$lease" "$lease" "$stack" \
    "$lease" "$zone" "$ends" "$lease" "$stack" "$zone" "$ends"
  printf 'Authorization: Bearer %s' "$token" |
    http --header @- --header 'Content-Type: application/json' --data "$body" "${LOGGING}entries:write"
  # end notice
}

# Serves the requests of an operator for as long as the machine runs.
#
# A request is the attribute bezel-container, {"id": 32 hexadecimal digits, "verb": start, stop or restart}; each id is
# done once. A start is done when the server answers, and another request may come before that.
serve_requests() {
  local etag=NONE id='' verb='' result='' detail='' waited=0 # of the request
  local state=unknown restarts=0 code=0 healthy=false        # of the container
  local told_last=''
  told=yes # what ends this from here on is no failed boot
  rm -rf "$RUN"
  if [[ -f $DONE ]]; then
    { read -r id verb result && IFS= read -r detail; } <"$DONE" || true
  fi
  while true; do
    look_at_container
    judge_request
    tell_container
    notice_end
    await_request
  done
}

# Sets $state, $restarts, $code and $healthy of serve_requests.
look_at_container() {
  state=unknown restarts=0 code=0 healthy=false
  if said=$(timeout 60 docker inspect --format '{{.State.Status}} {{.RestartCount}} {{.State.ExitCode}}' \
    "$CONTAINER" 2>&1); then
    read -r state restarts code <<<"$said"
  fi
  if [[ $state == running ]] &&
    curl --silent --fail --output /dev/null --max-time 5 "http://127.0.0.1:$port/health"; then
    healthy=true
  fi
}

# The end of a start: the server answers, or never will.
judge_request() {
  if [[ $result != running ]]; then return; fi
  if [[ $healthy == true ]]; then
    result='done' detail='vLLM answers /health'
  elif [[ $state == exited || $state == dead ]] || ((restarts > BOOT_RESTARTS)); then
    show_last_words
    result=failed
    detail="vLLM ended with exit code $code before it served, $restarts restarts ($(last_line)): nothing serves"
  elif ((waited >= HEALTHY_SECONDS)); then
    show_last_words
    result=failed detail="vLLM does not answer /health after $waited s ($(last_line)): nothing serves"
  else
    return
  fi
  remember_request
}

remember_request() {
  detail=${detail//[[:cntrl:]]/ }
  if ! mkdir -p "${DONE%/*}" ||
    ! printf '%s %s %s\n%s\n' "$id" "$verb" "$result" "$(redacted "$detail")" >"$DONE"; then
    say "the request $id cannot be stored in $DONE: a reboot would repeat it"
  fi
}

# The guest attribute bezel/container, whenever any of it has changed.
tell_container() {
  local value
  printf -v value '{"id": "%s", "verb": "%s", "result": "%s", "detail": "%s", "state": "%s", "exit": %d, "restarts": %d, '\
'"healthy": %s' "$id" "$verb" "$result" "$(json_text "$detail")" "$state" "$code" "$restarts" "$healthy"
  if [[ $value == "$told_last" ]]; then return; fi
  say "container $state, exit code $code, $restarts restarts, healthy: $healthy${id:+; request $id: $verb $result, $detail}"
  if write_attribute container "$value, \"at\": $(printf '%(%s)T' -1)}"; then told_last=$value; fi
}

# The request among the attributes, after the headers of an answer: its id and its verb, or nothing; or what is wrong.
readonly REQUEST='
import json, re, sys
try:
    text = json.loads(re.split("\r?\n\r?\n", sys.stdin.read(), maxsplit=1)[-1]).get("bezel-container", "")
    request = json.loads(text) if text else {}
except (ValueError, AttributeError):
    request = None
if request == {}:
    sys.exit()
if not isinstance(request, dict) or request.keys() != {"id", "verb"} or not isinstance(request["id"], str):
    sys.exit("it is no JSON object of an id and a verb")
if not re.fullmatch("[0-9a-f]{32}", request["id"]) or request["verb"] not in ("start", "stop", "restart"):
    sys.exit("its id has to be 32 hexadecimal digits, its verb start, stop or restart")
print(request["id"], request["verb"])'

# Waits for another request, LOOK_SECONDS at most, and does it.
await_request() {
  local seconds=$LOOK_SECONDS seen asked
  local -r header=$'\n''[Ee][Tt][Aa][Gg]: *([^[:space:]]+)'
  if [[ $result == running ]]; then seconds=$((waited < 600 ? 10 : 30)); fi
  waited=$((waited + seconds))
  if ! said=$(curl --silent --show-error --fail --include --connect-timeout 5 --max-time $((seconds + 30)) \
    --header 'Metadata-Flavor: Google' "$METADATA/instance/attributes/?recursive=true&alt=json&wait_for_change=true\
&timeout_sec=$seconds&last_etag=$etag" 2>&1) || [[ ! $said =~ $header ]]; then
    say "the metadata server cannot be asked for requests ($(last_line)): asking again in $seconds s"
    sleep "$seconds"
    return
  fi
  seen=${BASH_REMATCH[1]}
  if [[ $seen == "$etag" ]]; then return; fi
  etag=$seen
  if ! asked=$(printf '%s' "$said" | python3 -c "$REQUEST" 2>&1); then
    say "the attribute bezel-container is refused: ${asked:0:400}; nothing is done"
    return
  fi
  if [[ -z $asked || ${asked% *} == "$id" ]]; then return; fi
  id=${asked% *} verb=${asked#* } result=running detail="docker $verb" waited=0
  tell_container
  if ! retry 1 timeout 300 docker "$verb" "$CONTAINER"; then
    result=failed detail="docker $verb failed: $(last_line)"
  elif [[ $verb == stop ]]; then
    result='done' detail='the container is stopped'
  else
    detail='waiting for /health'
  fi
  remember_request
}

main() {
  trap finish EXIT
  rm -rf "$RUN"
  mkdir -p "${RUN%/*}"
  mkdir -m 700 "$RUN"
  remember_first_boot
  check_network
  pull_image
  fetch_weights
  start_container
  wait_until_healthy
  save_cache
  # only collector
  start_collector
  # end collector
  serve_requests || true # nothing that fails in it ends it
}

main

-- The gateway's identity for its fallback: a token of its account from the metadata server, as an action of HAProxy.
--
-- The action is called for each request, so it needs no timer, which would stand still without requests (and so
-- without a CPU). It keeps the token until a minute before its end; requests that come meanwhile wait for one answer,
-- and share its failure: if each asked again, they would wait one after the other for a metadata server that hangs.
-- Without a valid token `txn.identity`, the value of a header, stays unset. No token and no part of one is logged.
local HOST = os.getenv("GCE_METADATA_HOST") or "169.254.169.254"
local PATH = "/computeMetadata/v1/instance/service-accounts/default/identity?audience="
local SCHEME = "Bearer "
local MARGIN = 60
local TIMEOUT = 5000
local token, ends_at, is_asked, answers = nil, 0, false, 0

local function ask(txn, audience)
  local answer = core.httpclient():get {
    url = "http://" .. HOST .. PATH .. audience,
    headers = { ["Metadata-Flavor"] = { "Google" } },
    timeout = TIMEOUT,
  }
  local new_end = answer.status == 200 and tonumber(txn.c:jwt_payload_query(answer.body, "$.exp", "int"))
  if new_end then
    token, ends_at = answer.body, new_end
  else
    core.Warning("the metadata server gave no identity token: status " .. tostring(answer.status))
  end
end

core.register_action("fallback_identity", { "http-req" }, function(txn, audience)
  local earlier = answers
  while is_asked and answers == earlier do core.msleep(10) end
  if answers == earlier and ends_at < os.time() + MARGIN then
    is_asked = true
    local is_done, reason = pcall(ask, txn, audience)
    is_asked, answers = false, answers + 1
    if not is_done then core.Warning("no identity, as " .. tostring(reason)) end
  end
  if os.time() < ends_at then txn:set_var("txn.identity", SCHEME .. token) end
end, 1)

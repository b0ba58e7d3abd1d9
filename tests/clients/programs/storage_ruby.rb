# Calls of Google's gem for REST (google-api-client: Cloud Storage, Secret Manager and Resource Manager); prints a JSON
# object a line for each call. Needs ACCESS_TOKEN (`bezel local token`), TRIED_ENDPOINT and GOOGLE_CLOUD_PROJECT.
require "json"
require "stringio"
require "google/apis/cloudresourcemanager_v1"
require "google/apis/secretmanager_v1"
require "google/apis/storage_v1"

STORAGE = Google::Apis::StorageV1
SECRETS = Google::Apis::SecretmanagerV1
PROJECT = ENV.fetch("GOOGLE_CLOUD_PROJECT")
SHELF = "by-ruby".freeze
LARGE = "0123456789" * 500_000
CLIENT = "google-api-client (Ruby) #{Google::Apis::VERSION}".freeze

def service(kind)
  made = kind.new
  made.root_url = "#{ENV.fetch('TRIED_ENDPOINT')}/"
  made.batch_path = "batch/storage/v1" if made.is_a?(STORAGE::StorageService)
  made.authorization = ENV.fetch("ACCESS_TOKEN")
  made.client_options.read_timeout_sec = 20
  made.request_options.retries = 1
  made
end

def report(name, outcome, text = "")
  puts JSON.generate({ client: CLIENT, call: name, outcome: outcome, text: text[0, 800] })
end

# Make a call, which returns whether its result is right.
def passes(name)
  report(name, yield ? "passed" : "failed", "the result is another one")
rescue StandardError => e
  report(name, "failed", "#{e.class}: #{e.message} #{e.respond_to?(:body) ? e.body : ''} #{e.backtrace.first}")
end

def refused(name, status)
  yield
  report(name, "failed", "it was accepted")
rescue Google::Apis::Error => e
  report(name, e.status_code == status ? "passed" : "failed", "#{e.status_code} #{e.message}")
end

def lacks(name)
  yield
  report(name, "failed", "it is served: expect that it passes")
rescue Google::Apis::Error => e
  report(name, e.body.to_s.include?("notServedByLocalcloud") ? "not served" : "failed", "#{e.message} #{e.body}")
end

storage = service(STORAGE::StorageService)
object = ->(name) { STORAGE::Object.new(name: name, content_type: "text/plain") }
upload = lambda do |name, content|
  storage.insert_object(SHELF, object.call(name), upload_source: StringIO.new(content), content_type: "text/plain")
end
text = ->(name, **more) { storage.get_object(SHELF, name, download_dest: StringIO.new, **more).string }

passes("insert_bucket") { storage.insert_bucket(PROJECT, STORAGE::Bucket.new(name: SHELF, location: "us-east4")).name == SHELF }
refused("insert_bucket, one that exists", 409) { storage.insert_bucket(PROJECT, STORAGE::Bucket.new(name: SHELF)) }
passes("list_buckets") { storage.list_buckets(PROJECT, prefix: "by-").items.map(&:name).include?(SHELF) }
passes("get_bucket") { storage.get_bucket(SHELF, projection: "full").location == "US-EAST4" }
passes("patch_bucket") do
  storage.patch_bucket(SHELF, STORAGE::Bucket.new(labels: { "tried" => "yes" })).labels == { "tried" => "yes" }
end
passes("update_bucket") do
  bucket = storage.get_bucket(SHELF)
  bucket.versioning = STORAGE::Bucket::Versioning.new(enabled: true)
  storage.update_bucket(SHELF, bucket).versioning.enabled
end
passes("get_bucket_iam_policy, set_bucket_iam_policy") do
  policy = storage.get_bucket_iam_policy(SHELF, options_requested_policy_version: 3)
  reader = { role: "roles/storage.objectViewer", members: ["allAuthenticatedUsers"] }
  policy.bindings << STORAGE::Policy::Binding.new(**reader)
  storage.set_bucket_iam_policy(SHELF, policy).bindings.any? { |one| one.role == reader[:role] }
end
passes("test_bucket_iam_permissions") do
  storage.test_bucket_iam_permissions(SHELF, %w[storage.objects.get storage.buckets.delete]).permissions.size == 2
end
passes("get_project_service_account") { storage.get_project_service_account(PROJECT).email_address.include?("gs-project") }
passes("insert_object, resumable") { upload.call("large", LARGE).size == LARGE.size }
passes("insert_object, few bytes") { upload.call("small", "small").size == 5 }
passes("insert_object, no bytes") { upload.call("empty", "").size.zero? }
passes("insert_object, with metadata") do
  made = object.call("described")
  made.metadata = { "tried" => "pa\u00df" }
  made = storage.insert_object(SHELF, made, upload_source: StringIO.new("x"), content_type: "text/plain")
  made.metadata == { "tried" => "pa\u00df" }
end
refused("insert_object, a condition that does not hold", 412) do
  storage.insert_object(SHELF, object.call("small"), upload_source: StringIO.new("x"), if_generation_match: 0)
end
refused("insert_object, without content", 400) { storage.insert_object(SHELF, object.call("none")) }
passes("get_object, its content") { text.call("small") == "small" }
passes("get_object, a range") { text.call("small", options: { header: { "Range" => "bytes=1-3" } }) == "mal" }
passes("get_object, 5 MB") { text.call("large") == LARGE }
refused("get_object of none", 404) { storage.get_object(SHELF, "absent") }
passes("list_objects, by pages") { storage.fetch_all { |token| storage.list_objects(SHELF, max_results: 2, page_token: token) }.count == 4 }
passes("list_objects, by delimiter") do
  upload.call("tree/deep/one", "1")
  storage.list_objects(SHELF, prefix: "tree/", delimiter: "/").prefixes == ["tree/deep/"]
end
passes("list_objects, fields") { storage.list_objects(SHELF, fields: "items(name)").items.all? { |one| one.size.nil? } }
passes("patch_object") { storage.patch_object(SHELF, "small", STORAGE::Object.new(cache_control: "no-store")).cache_control == "no-store" }
passes("update_object") do
  found = storage.get_object(SHELF, "small")
  found.content_language = "de"
  storage.update_object(SHELF, "small", found).content_language == "de"
end
passes("compose_object") do
  sources = %w[small described].map { |name| STORAGE::ComposeRequest::SourceObject.new(name: name) }
  storage.compose_object(SHELF, "joined", STORAGE::ComposeRequest.new(source_objects: sources))
  text.call("joined") == "smallx"
end
passes("copy_object") { storage.copy_object(SHELF, "small", SHELF, "copied").size == 5 }
passes("rewrite_object") { storage.rewrite_object(SHELF, "large", SHELF, "again").done }
passes("a name that is encoded") { upload.call("a/b ?#&+\u00df%2F", "odd") && text.call("a/b ?#&+\u00df%2F") == "odd" }
passes("batch") do
  found = []
  storage.batch do |batch|
    batch.get_object(SHELF, "small") { |one, error| found << (error || one.name) }
    batch.delete_object(SHELF, "copied") { |_, error| found << error }
  end
  found == ["small", nil]
end
passes("delete_object") { storage.delete_object(SHELF, "empty") || true }
refused("delete_bucket, with objects", 409) { storage.delete_bucket(SHELF) }
lacks("batch_upload") do
  storage.batch_upload do |batch|
    batch.insert_object(SHELF, object.call("b1"), upload_source: StringIO.new("1"), content_type: "text/plain")
  end
end
lacks("list_bucket_access_controls") { storage.list_bucket_access_controls(SHELF) }
lacks("list_object_access_controls") { storage.list_object_access_controls(SHELF, "small") }
lacks("list_notifications") { storage.list_notifications(SHELF) }
lacks("list_project_hmac_keys") { storage.list_project_hmac_keys(PROJECT) }
lacks("insert_object_access_control") do
  storage.insert_object_access_control(SHELF, "small", STORAGE::ObjectAccessControl.new(entity: "allUsers", role: "READER"))
end

secrets = service(SECRETS::SecretManagerService)
parent = "projects/#{PROJECT}"
name = "#{parent}/secrets/by-ruby"
passes("create_project_secret") do
  kept = SECRETS::Replication.new(automatic: SECRETS::Automatic.new)
  secrets.create_project_secret(parent, SECRETS::Secret.new(replication: kept), secret_id: "by-ruby").name.end_with?("by-ruby")
end
passes("patch_project_secret") do
  changed = SECRETS::Secret.new(labels: { "tried" => "yes" })
  secrets.patch_project_secret(name, changed, update_mask: "labels").labels == { "tried" => "yes" }
end
passes("add_project_secret_version, access_project_secret_version") do
  payload = SECRETS::SecretPayload.new(data: "pa\u00df")
  made = secrets.add_project_secret_version(name, SECRETS::AddSecretVersionRequest.new(payload: payload))
  secrets.access_project_secret_version(made.name).payload.data.force_encoding("UTF-8") == "pa\u00df"
end
passes("list_project_secrets") { secrets.list_project_secrets(parent).secrets.size >= 1 }
passes("delete_project_secret") { secrets.delete_project_secret(name) }
manager = service(Google::Apis::CloudresourcemanagerV1::CloudResourceManagerService)
passes("get_project") { manager.get_project(PROJECT).project_id == PROJECT }

// Calls of Google's Java packages for Cloud Storage (JSON over HTTP) and Secret Manager (REST); prints a JSON object a
// line for each call. Run as one source file with the packages on the class path. Variables: those of `bezel local env`
// and TRIED_ENDPOINT, the address of all APIs.

import com.google.api.gax.paging.Page;
import com.google.api.gax.retrying.RetrySettings;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.NotFoundException;
import com.google.cloud.Identity;
import com.google.cloud.Policy;
import com.google.cloud.ReadChannel;
import com.google.cloud.WriteChannel;
import com.google.cloud.secretmanager.v1.*;
import com.google.cloud.storage.*;
import com.google.cloud.storage.Storage.*;
import com.google.iam.v1.Binding;
import com.google.protobuf.ByteString;
import com.google.protobuf.FieldMask;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.StreamSupport;

public class GoogleJava {
  static final String PROJECT = System.getenv("GOOGLE_CLOUD_PROJECT");
  static final String ADDRESS = System.getenv("TRIED_ENDPOINT");
  static final String SHELF = "by-java";
  static final byte[] LARGE = new byte[5_000_000];
  static final String NOT_SERVED = "notServedByLocalcloud";
  static Storage storage;
  static String client;

  interface Call {
    void run() throws Exception;
  }

  static void report(String name, String outcome, String text) {
    String shown = text == null ? "null" : text.substring(0, Math.min(1000, text.length()));
    shown = shown.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\r", "").replace("\t", " ");
    System.out.println(
        "{\"client\": \"" + client + "\", \"call\": \"" + name + "\", \"outcome\": \"" + outcome + "\", \"text\": \""
            + shown + "\"}");
  }

  /** Make a call, which checks its own result, and report it. */
  static void passes(String name, Call call) {
    try {
      call.run();
      report(name, "passed", "");
    } catch (Throwable error) {
      report(name, "failed", error + " at " + Arrays.asList(error.getStackTrace()).subList(0, 3));
    }
  }

  /** Make a call that is known not to be served: its error has the reason. */
  static void lacks(String name, Call call) {
    try {
      call.run();
      report(name, "failed", "it is served: expect that it passes");
    } catch (StorageException error) {
      report(name, NOT_SERVED.equals(error.getReason()) ? "not served" : "failed", error.getMessage());
    } catch (ApiException error) {
      boolean named = NOT_SERVED.equals(error.getReason());
      report(name, named ? "not served" : "failed", error.getMessage());
    } catch (Throwable error) {
      report(name, "failed", error.toString());
    }
  }

  /** Make a call that has to end with a status of the storage client. */
  static void refused(String name, int status, Call call) {
    passes(name, () -> {
      try {
        call.run();
      } catch (StorageException error) {
        equal(error.getCode(), status);
        return;
      }
      throw new AssertionError("it was accepted");
    });
  }

  static void equal(Object found, Object wanted) {
    if (!found.equals(wanted)) {
      throw new AssertionError(found + " in place of " + wanted);
    }
  }

  static void holds(boolean condition) {
    if (!condition) {
      throw new AssertionError("the result is another one");
    }
  }

  static BlobInfo named(String name) {
    return BlobInfo.newBuilder(SHELF, name).setContentType("text/plain").build();
  }

  static String text(String name) {
    return new String(storage.readAllBytes(SHELF, name));
  }

  static List<String> names(Page<Blob> page) {
    return StreamSupport.stream(page.iterateAll().spliterator(), false).map(BlobInfo::getName).toList();
  }

  static void buckets() {
    passes("create", () -> {
      BucketInfo info = BucketInfo.newBuilder(SHELF).setLocation("us-east4").setVersioningEnabled(true).build();
      equal(storage.create(info).getLocation(), "US-EAST4");
    });
    refused("create, a bucket that exists", 409, () -> storage.create(BucketInfo.of(SHELF)));
    passes("list", () -> holds(
        StreamSupport.stream(storage.list(BucketListOption.prefix("by-")).iterateAll().spliterator(), false)
            .anyMatch(bucket -> bucket.getName().equals(SHELF))));
    passes("get, a bucket", () -> equal(storage.get(SHELF).getName(), SHELF));
    passes("get, a bucket that does not exist", () -> holds(storage.get("by-nobody-at-all") == null));
    passes("update, labels of a bucket", () -> {
      Bucket bucket = storage.get(SHELF).toBuilder().setLabels(Map.of("tried", "yes")).build().update();
      equal(bucket.getLabels(), Map.of("tried", "yes"));
    });
    passes("update, lifecycle of a bucket", () -> {
      var rule = new BucketInfo.LifecycleRule(
          BucketInfo.LifecycleRule.LifecycleAction.newDeleteAction(),
          BucketInfo.LifecycleRule.LifecycleCondition.newBuilder().setAge(9).build());
      equal(storage.get(SHELF).toBuilder().setLifecycleRules(List.of(rule)).build().update().getLifecycleRules().size(), 1);
    });
    passes("update, uniform access and cors", () -> {
      var uniform = BucketInfo.IamConfiguration.newBuilder().setIsUniformBucketLevelAccessEnabled(true).build();
      var cors = Cors.newBuilder().setMaxAgeSeconds(60).setMethods(List.of(HttpMethod.GET))
          .setOrigins(List.of(Cors.Origin.any())).build();
      Bucket bucket = storage.get(SHELF).toBuilder().setIamConfiguration(uniform).setCors(List.of(cors)).build().update();
      holds(bucket.getIamConfiguration().isUniformBucketLevelAccessEnabled());
    });
    passes("getIamPolicy, setIamPolicy", () -> {
      Policy policy = storage.getIamPolicy(SHELF, BucketSourceOption.requestedPolicyVersion(3));
      var more = policy.toBuilder().addIdentity(StorageRoles.objectViewer(), Identity.allAuthenticatedUsers()).build();
      holds(storage.setIamPolicy(SHELF, more).getBindings().containsKey(StorageRoles.objectViewer()));
    });
    passes("testIamPermissions", () -> equal(
        storage.testIamPermissions(SHELF, List.of("storage.objects.get", "storage.buckets.delete")), List.of(true, true)));
    passes("getServiceAccount", () -> holds(storage.getServiceAccount(PROJECT).getEmail().contains("gs-project-accounts")));
  }

  static void uploads() {
    passes("create, bytes", () -> equal(storage.create(named("bytes"), "bytes".getBytes()).getSize(), 5L));
    passes("create, no bytes", () -> equal(storage.create(named("empty")).getSize(), 0L));
    passes("create, a range of bytes", () -> {
      storage.create(named("part"), "bytes".getBytes(), 1, 3);
      equal(text("part"), "yte");
    });
    passes("create, a compressed request", () -> {
      storage.create(named("packed"), new byte[3000], BlobTargetOption.detectContentType());
      storage.createFrom(named("packed"), new java.io.ByteArrayInputStream(LARGE), BlobWriteOption.disableGzipContent());
      equal(storage.readAllBytes(SHELF, "packed").length, LARGE.length);
    });
    refused("create, a condition that does not hold", 412,
        () -> storage.create(named("bytes"), "x".getBytes(), BlobTargetOption.doesNotExist()));
    passes("createFrom, a file of 5 MB", () -> {
      Path file = Files.createTempFile("java", "");
      Files.write(file, LARGE);
      equal(storage.createFrom(named("large"), file, 262_144).getSize(), (long) LARGE.length);
      Files.delete(file);
    });
    passes("writer, in chunks", () -> {
      try (WriteChannel writer = storage.writer(named("chunks"))) {
        writer.setChunkSize(262_144);
        writer.write(ByteBuffer.wrap(LARGE, 0, 1_000_000));
      }
      equal(storage.get(SHELF, "chunks").getSize(), 1_000_000L);
    });
    passes("writer, restored in the middle", () -> {
      WriteChannel first = storage.writer(named("restored"));
      first.setChunkSize(262_144);
      first.write(ByteBuffer.wrap(LARGE, 0, 300_000));
      try (WriteChannel second = first.capture().restore()) {
        second.write(ByteBuffer.wrap(LARGE, 0, 100_000));
      }
      equal(storage.get(SHELF, "restored").getSize(), 400_000L);
    });
    passes("writer, no bytes", () -> {
      storage.writer(named("none")).close();
      equal(storage.get(SHELF, "none").getSize(), 0L);
    });
    passes("signUrl of a resumable upload, writer of it", () -> {
      URL url = storage.signUrl(named("by-url"), 5, TimeUnit.MINUTES, SignUrlOption.httpMethod(HttpMethod.POST),
          SignUrlOption.withExtHeaders(Map.of("x-goog-resumable", "start")), SignUrlOption.withV4Signature(),
          SignUrlOption.withHostName(ADDRESS), SignUrlOption.withPathStyle());
      try (WriteChannel writer = storage.writer(url)) {
        writer.write(ByteBuffer.wrap("by url".getBytes()));
      }
      equal(text("by-url"), "by url");
    });
  }

  static void downloads() {
    passes("readAllBytes", () -> equal(text("bytes"), "bytes"));
    passes("reader, from an offset to a limit", () -> {
      ByteBuffer read = ByteBuffer.allocate(10);
      try (ReadChannel reader = storage.reader(SHELF, "bytes")) {
        reader.seek(1);
        reader.limit(4);
        while (reader.read(read) > 0) {}
      }
      equal(new String(read.array(), 0, read.position()), "yte");
    });
    passes("reader, in chunks", () -> {
      int size = 0;
      try (ReadChannel reader = storage.reader(SHELF, "large")) {
        reader.setChunkSize(1 << 20);
        ByteBuffer read = ByteBuffer.allocate(1 << 19);
        for (int count = reader.read(read); count >= 0; count = reader.read(read)) {
          size += count;
          read.clear();
        }
      }
      equal(size, LARGE.length);
    });
    passes("downloadTo", () -> {
      Path file = Files.createTempFile("java", "");
      storage.downloadTo(BlobId.of(SHELF, "large"), file);
      equal(Files.size(file), (long) LARGE.length);
      Files.delete(file);
    });
    refused("readAllBytes of none", 404, () -> storage.readAllBytes(SHELF, "absent"));
    passes("signUrl, version 4", () -> equal(fetched(SignUrlOption.withV4Signature()), "bytes"));
    passes("signUrl, version 2", () -> equal(fetched(SignUrlOption.withV2Signature()), "bytes"));
    passes("generateSignedPostPolicyV4", () -> {
      var conditions = PostPolicyV4.PostConditionsV4.newBuilder()
          .addContentLengthRangeCondition(0, 100).build();
      var policy = storage.generateSignedPostPolicyV4(named("posted"), 5, TimeUnit.MINUTES, conditions,
          PostPolicyV4Option.withPathStyle());
      holds(policy.getFields().containsKey("x-goog-signature"));
    });
  }

  static String fetched(SignUrlOption version) throws Exception {
    URL url = storage.signUrl(named("bytes"), 5, TimeUnit.MINUTES, version, SignUrlOption.withHostName(ADDRESS),
        SignUrlOption.withPathStyle());
    var request = HttpRequest.newBuilder(URI.create(url.toString())).build();
    var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    return client.send(request, BodyHandlers.ofString()).body();
  }

  static void changes() {
    passes("list, by prefix and delimiter", () -> {
      storage.create(named("tree/one"), new byte[1]);
      storage.create(named("tree/deep/two"), new byte[1]);
      Page<Blob> page = storage.list(SHELF, BlobListOption.prefix("tree/"), BlobListOption.currentDirectory());
      equal(names(page), List.of("tree/one", "tree/deep/"));
    });
    passes("list, by pages", () -> holds(names(storage.list(SHELF, BlobListOption.pageSize(2))).size() > 8));
    passes("list, versions", () -> {
      storage.create(named("bytes"), "bytes".getBytes());
      equal(names(storage.list(SHELF, BlobListOption.versions(true), BlobListOption.prefix("bytes"))).size(), 2);
    });
    passes("list, chosen fields and a glob", () -> equal(
        names(storage.list(SHELF, BlobListOption.matchGlob("tree/**"), BlobListOption.fields(BlobField.NAME))).size(), 2));
    passes("update, metadata", () -> {
      Blob blob = storage.get(SHELF, "bytes").toBuilder().setMetadata(Map.of("a", "1")).build().update();
      equal(blob.getMetadata(), Map.of("a", "1"));
    });
    passes("update, a key of the metadata deleted", () -> {
      var changed = new java.util.HashMap<String, String>();
      changed.put("a", null);
      Blob blob = storage.get(SHELF, "bytes").toBuilder().setMetadata(changed).build().update();
      holds(blob.getMetadata() == null || !blob.getMetadata().containsKey("a"));
    });
    passes("update, a hold", () -> {
      holds(storage.get(SHELF, "part").toBuilder().setTemporaryHold(true).build().update().getTemporaryHold());
      storage.get(SHELF, "part").toBuilder().setTemporaryHold(false).build().update();
    });
    passes("compose", () -> {
      storage.compose(ComposeRequest.of(SHELF, List.of("bytes", "part"), "joined"));
      equal(text("joined"), "bytesyte");
    });
    passes("copy", () -> {
      var request = CopyRequest.newBuilder().setSource(BlobId.of(SHELF, "bytes")).setTarget(named("copied")).build();
      equal(storage.copy(request).getResult().getSize(), 5L);
    });
    passes("copy, in steps", () -> {
      var request = CopyRequest.newBuilder().setSource(BlobId.of(SHELF, "large")).setTarget(named("other"))
          .setMegabytesCopiedPerChunk(1L).build();
      CopyWriter writer = storage.copy(request);
      while (!writer.isDone()) {
        writer.copyChunk();
      }
      equal(writer.getResult().getSize(), (long) LARGE.length);
    });
    passes("copy, with another storage class", () -> {
      var target = BlobInfo.newBuilder(SHELF, "copied").setStorageClass(StorageClass.NEARLINE).build();
      var request = CopyRequest.newBuilder().setSource(BlobId.of(SHELF, "copied")).setTarget(target).build();
      equal(storage.copy(request).getResult().getStorageClass(), StorageClass.NEARLINE);
    });
    passes("moveBlob", () -> {
      storage.moveBlob(MoveBlobRequest.newBuilder().setSource(BlobId.of(SHELF, "copied"))
          .setTarget(BlobId.of(SHELF, "moved")).build());
      holds(storage.get(SHELF, "copied") == null);
    });
    passes("batch: get, update, delete", () -> {
      StorageBatch batch = storage.batch();
      var got = batch.get(SHELF, "bytes");
      var absent = batch.get(SHELF, "absent");
      var updated = batch.update(BlobInfo.newBuilder(SHELF, "moved").setMetadata(Map.of("b", "2")).build());
      var deleted = batch.delete(SHELF, "joined");
      batch.submit();
      equal(got.get().getSize(), 5L);
      holds(absent.get() == null);
      equal(updated.get().getMetadata(), Map.of("b", "2"));
      holds(deleted.get());
    });
    passes("delete and restore", () -> {
      long generation = storage.get(SHELF, "moved").getGeneration();
      holds(storage.delete(BlobId.of(SHELF, "moved", generation)));
      storage.restore(BlobId.of(SHELF, "moved", generation));
      holds(storage.get(SHELF, "moved") != null);
    });
    passes("delete of none", () -> holds(!storage.delete(SHELF, "absent")));
    refused("delete of a bucket with objects", 409, () -> storage.delete(SHELF));
  }

  static void unserved() {
    lacks("listAcls", () -> storage.listAcls(SHELF));
    lacks("createAcl", () -> storage.createAcl(SHELF, Acl.of(Acl.User.ofAllUsers(), Acl.Role.READER)));
    lacks("listDefaultAcls", () -> storage.listDefaultAcls(SHELF));
    lacks("listNotifications", () -> storage.listNotifications(SHELF));
    lacks("createNotification", () -> storage.createNotification(SHELF,
        NotificationInfo.of("projects/" + PROJECT + "/topics/a")));
    lacks("listHmacKeys", () -> storage.listHmacKeys(ListHmacKeysOption.projectId(PROJECT)));
  }

  static void secrets() throws Exception {
    SecretManagerServiceSettings.Builder settings = SecretManagerServiceSettings.newHttpJsonBuilder();
    settings.setEndpoint(ADDRESS);
    try (SecretManagerServiceClient manager = SecretManagerServiceClient.create(settings.build())) {
      SecretName name = SecretName.of(PROJECT, "by-java");
      passes("createSecret", () -> {
        Secret secret = Secret.newBuilder()
            .setReplication(Replication.newBuilder().setAutomatic(Replication.Automatic.getDefaultInstance())).build();
        equal(manager.createSecret(ProjectName.of(PROJECT), "by-java", secret).getName().endsWith("/by-java"), true);
      });
      passes("getSecret", () -> holds(manager.getSecret(name).getReplication().hasAutomatic()));
      passes("listSecrets", () -> holds(manager.listSecrets(ProjectName.of(PROJECT)).iterateAll().iterator().hasNext()));
      passes("updateSecret", () -> {
        Secret secret = manager.getSecret(name).toBuilder().putLabels("tried", "yes").build();
        var mask = FieldMask.newBuilder().addPaths("labels").build();
        equal(manager.updateSecret(secret, mask).getLabelsMap(), Map.of("tried", "yes"));
      });
      passes("addSecretVersion, accessSecretVersion", () -> {
        var payload = SecretPayload.newBuilder().setData(ByteString.copyFromUtf8("pa\u00df")).build();
        var version = manager.addSecretVersion(name, payload);
        equal(manager.accessSecretVersion(version.getName()).getPayload().getData().toStringUtf8(), "pa\u00df");
        equal(manager.disableSecretVersion(version.getName()).getState(), SecretVersion.State.DISABLED);
        equal(manager.destroySecretVersion(version.getName()).getState(), SecretVersion.State.DESTROYED);
      });
      passes("setIamPolicy, testIamPermissions", () -> {
        var policy = manager.getIamPolicy(com.google.iam.v1.GetIamPolicyRequest.newBuilder().setResource(name.toString()).build());
        var more = policy.toBuilder().addBindings(Binding.newBuilder().setRole("roles/secretmanager.viewer")
            .addMembers("serviceAccount:deployer@" + PROJECT + ".iam.gserviceaccount.com")).build();
        var request = com.google.iam.v1.SetIamPolicyRequest.newBuilder().setResource(name.toString()).setPolicy(more).build();
        equal(manager.setIamPolicy(request).getBindingsCount(), 1);
      });
      passes("deleteSecret, getSecret of none", () -> {
        manager.deleteSecret(name);
        try {
          manager.getSecret(name);
        } catch (NotFoundException error) {
          return;
        }
        throw new AssertionError("it is still there");
      });
    }
  }

  public static void main(String[] arguments) throws Exception {
    new java.util.Random(1).nextBytes(LARGE);
    client = "google-cloud-storage (Java) " + StorageOptions.version();
    storage = StorageOptions.http().setHost(ADDRESS).setProjectId(PROJECT).build().getService();
    buckets();
    uploads();
    downloads();
    changes();
    unserved();
    client = "google-cloud-secretmanager (Java) " + System.getenv("TRIED_VERSION");
    secrets();
  }
}

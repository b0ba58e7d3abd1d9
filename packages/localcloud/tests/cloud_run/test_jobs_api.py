"""Cloud Run's jobs: made, run, counted, tried again, cancelled, deleted, and refused."""

import httpx
import pytest

from bezel_base.process_status import processes_with_variable
from bezel_localcloud import control
from localcloud_support.client import PARENT, REGION, RUNTIME, Client, is_alive, until

JOBS = f"/run/v2/{PARENT}/locations/{REGION}/jobs"


class Jobs:
    """What the tests do with jobs; all that they made goes in the end."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.made = []

    def body(self, *args, env=(), tasks=1, retries=0, **template):
        image = self.cloud.template()["containers"][0]["image"]
        container = {"image": image, "args": list(args), "env": list(env)}
        task = {"containers": [container], "serviceAccount": RUNTIME, "maxRetries": retries}
        return {"template": {"taskCount": tasks, "template": task | template}}

    def create(self, name, *args, **options):
        self.made.append(name)
        return self.cloud.finish("run/v2", self.cloud.post(JOBS, self.body(*args, **options), jobId=name))

    def run(self, name, **body):
        """The operation of a run, begun."""
        answer = self.cloud.post(f"{JOBS}/{name}:run", body)
        assert answer.status_code == 200, answer.text
        return answer

    def ran(self, name, **body):
        """The execution of a run that has ended."""
        return self.cloud.finish("run/v2", self.run(name, **body))["response"]

    def job(self, name):
        return self.cloud.get(f"{JOBS}/{name}").json()

    def tasks(self, execution):
        return self.cloud.get(f"/run/v2/{execution['name']}/tasks").json()["tasks"]

    def log(self, name, more=""):
        terms = f'resource.type="cloud_run_job" AND resource.labels.job_name="{name}" {more}'
        body = {"resourceNames": [PARENT], "filter": terms, "pageSize": 1000}
        return self.cloud.post("/logging/v2/entries:list", body).json().get("entries", [])


@pytest.fixture
def jobs(cloud):
    client = Jobs(cloud)
    yield client
    for name in client.made:
        cloud.delete(f"{JOBS}/{name}")


def completed_condition(row):
    return next(one for one in row["conditions"] if one["type"] == "Completed")


@pytest.mark.slow
def test_every_task_gets_its_index_and_the_execution_counts_them(jobs):
    names = "CLOUD_RUN_JOB,CLOUD_RUN_EXECUTION,CLOUD_RUN_TASK_INDEX,CLOUD_RUN_TASK_COUNT,CLOUD_RUN_TASK_ATTEMPT,OWN"
    jobs.create("told", f"--tell={names}", "--exit=0", env=[{"name": "OWN", "value": "its"}], tasks=2)
    execution = jobs.ran("told")
    name = execution["name"].rpartition("/")[2]
    assert execution["succeededCount"] == execution["taskCount"] == 2
    assert "failedCount" not in execution
    assert completed_condition(execution)["state"] == "CONDITION_SUCCEEDED"
    assert [task.get("index", 0) for task in jobs.tasks(execution)] == [0, 1]
    for index in (0, 1):
        entries = jobs.log("told", f'labels."run.googleapis.com/task_index"="{index}" AND logName:"stdout"')
        assert {one["labels"]["run.googleapis.com/execution_name"] for one in entries} == {name}
        assert {one["textPayload"] for one in entries} >= {
            "CLOUD_RUN_JOB=told",
            f"CLOUD_RUN_EXECUTION={name}",
            f"CLOUD_RUN_TASK_INDEX={index}",
            "CLOUD_RUN_TASK_COUNT=2",
            "CLOUD_RUN_TASK_ATTEMPT=0",
            "OWN=its",
        }
    job = jobs.job("told")
    assert job["executionCount"] == 1
    assert job["latestCreatedExecution"]["completionStatus"] == "EXECUTION_SUCCEEDED"
    assert job["template"]["template"]["maxRetries"] == 0


@pytest.mark.slow
def test_a_failed_task_is_retried_or_fails_the_execution(jobs):
    """A task that fails is tried again and one that may not be fails the execution."""
    jobs.create("stubborn", "--fails-until=1", retries=1)
    again = jobs.ran("stubborn")
    assert (again["succeededCount"], again["retriedCount"]) == (1, 1)
    jobs.create("broken", "--exit=7")
    once = jobs.ran("broken")
    assert (once["failedCount"], once.get("retriedCount", 0)) == (1, 0)
    assert completed_condition(once)["executionReason"] == "NON_ZERO_EXIT_CODE"
    assert "broken-" in completed_condition(once)["message"]
    assert jobs.tasks(once)[0]["lastAttemptResult"]["exitCode"] == 7
    assert jobs.log("broken", 'severity="WARNING"')[0]["textPayload"] == "Container called exit(7)."


@pytest.mark.slow
def test_a_task_has_its_timeout_and_is_ended_then(jobs):
    # In this time its process gets to the handler of its signal, however busy this machine is.
    jobs.create("slow", "--silent", "--last-words=stopped", timeout="5s")
    execution = jobs.ran("slow")
    assert execution["failedCount"] == 1
    assert "timeout of 5s" in jobs.tasks(execution)[0]["lastAttemptResult"]["status"]["message"]
    first_words = [entry.get("textPayload", "").partition(" ")[0] for entry in jobs.log("slow")]
    assert first_words.index("Terminating") < first_words.index(
        "stopped"
    )  # the reason, before the container is stopped


@pytest.mark.slow
def test_no_more_tasks_run_at_once_than_may(jobs):
    jobs.create("narrow", "--silent", tasks=2)
    body = jobs.body("--silent", tasks=2)
    body["template"]["parallelism"] = 1
    jobs.made.append("one")
    jobs.cloud.finish("run/v2", jobs.cloud.post(JOBS, body, jobId="one"))
    wide, thin = (jobs.run(name).json()["metadata"]["name"] for name in ("narrow", "one"))

    def running(execution):
        return jobs.cloud.get(f"/run/v2/{execution}").json().get("runningCount", 0)

    until(lambda: running(wide) == 2)
    until(lambda: running(thin) == 1)
    states = [task.get("startTime") for task in jobs.tasks({"name": thin})]
    assert [bool(state) for state in states] == [True, False]


@pytest.mark.slow
def test_a_cancelled_execution_says_so_and_leaves_no_process(jobs):
    jobs.create("ended", "--tell=LOCALCLOUD_INSTANCE", "--silent", tasks=2)
    operation = jobs.run("ended")
    name = operation.json()["metadata"]["name"]
    until(lambda: jobs.log("ended", 'textPayload:"LOCALCLOUD_INSTANCE"'))
    cancelled = jobs.cloud.finish("run/v2", jobs.cloud.post(f"/run/v2/{name}:cancel"))["response"]
    assert cancelled["cancelledCount"] == 2
    assert completed_condition(cancelled)["executionReason"] == "CANCELLED"
    assert jobs.cloud.finish("run/v2", operation)["response"]["cancelledCount"] == 2
    again = jobs.cloud.post(f"/run/v2/{name}:cancel")
    assert (again.status_code, again.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")


def processes_of(execution):
    """Process ids of an execution's tasks."""
    return processes_with_variable("CLOUD_RUN_EXECUTION", execution.rpartition("/")[2])


@pytest.mark.slow
def test_a_deleted_job_takes_its_executions_and_their_processes_with_it(jobs):
    jobs.create("gone", "--silent", tasks=2)
    operation = jobs.run("gone")
    name = operation.json()["metadata"]["name"]
    pids = until(lambda: len(processes_of(name)) == 2 and processes_of(name))
    jobs.cloud.finish("run/v2", jobs.cloud.delete(f"{JOBS}/gone"))
    until(lambda: not any(is_alive(pid) for pid in pids))
    assert jobs.cloud.get(f"{JOBS}/gone").status_code == 404
    assert jobs.cloud.get(f"/run/v2/{name}").status_code == 404
    assert jobs.cloud.get(f"/run/v2/{name}/tasks").status_code == 404
    assert jobs.cloud.finish("run/v2", operation)["error"]["code"] == 10
    left = jobs.cloud.get("/localcloud/resources").json()
    assert not {"executions", "tasks"} & set(left)


@pytest.mark.slow
def test_a_task_has_its_buckets_and_secrets_or_says_which_it_has_not(jobs):
    def body(bucket, secret):
        env = [{"name": "A", "valueSource": {"secretKeyRef": {"secret": secret, "version": "1"}}}] if secret else []
        made = jobs.body("--tell=A,LOCALCLOUD_MOUNTS", "--exit=0", env=env)
        task = made["template"]["template"]
        task["volumes"] = [{"name": "files", "gcs": {"bucket": bucket, "readOnly": True}}]
        task["containers"][0]["volumeMounts"] = [{"name": "files", "mountPath": "/mnt/files"}]
        return made

    jobs.made += ["mounted", "bucketless", "secretless"]
    for name, bucket in (("mounted", "models"), ("bucketless", "nothing")):
        jobs.cloud.finish("run/v2", jobs.cloud.post(JOBS, body(bucket, ""), jobId=name))
    assert jobs.ran("mounted")["succeededCount"] == 1
    assert any('"/mnt/files"' in one.get("textPayload", "") for one in jobs.log("mounted"))
    assert jobs.ran("bucketless")["failedCount"] == 1
    assert any("bucket not found" in one.get("textPayload", "") for one in jobs.log("bucketless", "severity=ERROR"))
    secretless = jobs.cloud.finish("run/v2", jobs.cloud.post(JOBS, body("models", "nothing"), jobId="secretless"))
    assert "Permission denied on secret" in secretless["error"]["message"]


@pytest.mark.slow
def test_an_execution_ends_with_the_cloud_and_goes_on_with_it(own_daemon):
    jobs = Jobs(Client(own_daemon()))
    jobs.cloud.prepare()
    jobs.create("patient", "--silent", tasks=2)
    name = jobs.run("patient").json()["metadata"]["name"]
    pids = until(lambda: len(processes_of(name)) == 2 and processes_of(name))
    control.stop(jobs.cloud.endpoint.directory)
    assert not any(is_alive(pid) for pid in pids)
    again = Client(own_daemon())
    until(lambda: len(processes_of(name)) == 2)
    again.finish("run/v2", again.post(f"/run/v2/{name}:cancel"))
    assert again.get(f"/run/v2/{name}").json()["cancelledCount"] == 2
    until(lambda: not processes_of(name))


@pytest.mark.slow
def test_a_run_may_set_arguments_tasks_and_variables_otherwise(jobs):
    jobs.create("varied", "--exit=1", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])
    override = {"args": ["--tell=A,B", "--exit=0"], "env": [{"name": "B", "value": "3"}]}
    execution = jobs.ran("varied", overrides={"taskCount": 2, "containerOverrides": [override]})
    assert execution["succeededCount"] == 2
    texts = {one.get("textPayload") for one in jobs.log("varied", 'logName:"stdout"')}
    assert {"A=1", "B=3"} <= texts
    assert jobs.job("varied")["template"]["template"]["containers"][0]["args"] == ["--exit=1"]


@pytest.mark.slow
def test_a_task_has_the_tokens_of_its_account_and_of_no_other(jobs):
    jobs.create("asks", "--tell=GCE_METADATA_HOST,GOOGLE_STORAGE_CUSTOM_ENDPOINT", "--silent")
    operation = jobs.run("asks")
    texts = until(lambda: [e["textPayload"] for e in jobs.log("asks") if "METADATA_HOST=" in e.get("textPayload", "")])
    metadata = httpx.Client(
        base_url=f"http://{texts[0].partition('=')[2]}", headers={"Metadata-Flavor": "Google"}, trust_env=False
    )
    accounts = "/computeMetadata/v1/instance/service-accounts"
    assert metadata.get(f"{accounts}/default/email").text == RUNTIME
    token = metadata.get(f"{accounts}/default/token").json()["access_token"]
    reader = {"Authorization": f"Bearer {token}"}
    assert jobs.cloud.http.get("/storage/v1/b/models/o", headers=reader).status_code == 200
    assert jobs.cloud.http.get(JOBS, headers=reader).status_code == 403
    assert metadata.get(f"{accounts}/deployer@bezel-local.iam.gserviceaccount.com/token").status_code == 404
    assert metadata.get(f"{accounts}/default/email", headers={"Metadata-Flavor": ""}).status_code == 403
    jobs.cloud.finish("run/v2", jobs.cloud.post(f"/run/v2/{operation.json()['metadata']['name']}:cancel"))
    with pytest.raises(httpx.ConnectError):
        metadata.get(f"{accounts}/default/email")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"timeout": "700000s"}, "job.template.template.timeout"),
        ({"maxRetries": 11}, "job.template.template.max_retries"),
        ({"containers": []}, "job.template.template.containers"),
        ({"timeout": "0s"}, "job.template.template.timeout"),
        ({"timeout": "-5s"}, "job.template.template.timeout"),
        ({"nodeSelector": {"accelerator": "nvidia-l5"}}, "job.template.template.node_selector.accelerator"),
        (
            {"vpcAccess": {"networkInterfaces": [{"network": "none"}]}},
            "job.template.template.vpc_access.network_interfaces.network",
        ),
    ],
)
def test_a_job_that_the_platform_never_takes_is_refused_with_its_field(jobs, change, field):
    answer = jobs.cloud.post(JOBS, jobs.body(**change), jobId="refused")
    assert answer.status_code == 400, answer.text
    assert field in [one["field"] for one in answer.json()["error"]["details"][0]["fieldViolations"]]
    assert jobs.cloud.get(f"{JOBS}/refused").status_code == 404


@pytest.mark.parametrize("name", ["Upper", "1st", "ends-", "x" * 50])
def test_a_name_that_is_none_is_refused(jobs, name):
    answer = jobs.cloud.post(JOBS, jobs.body(), jobId=name)
    assert answer.status_code == 400
    assert "only lower case letters" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("tasks", "message"), [(-1, "-1 is not between 1"), (10_001, "10001 is not between 1 and 10000")]
)
def test_there_are_so_many_tasks_at_most(jobs, tasks, message):
    answer = jobs.cloud.post(JOBS, jobs.body(tasks=tasks), jobId="many")
    assert message in answer.json()["error"]["message"]


def test_nobody_makes_a_job_for_an_account_that_is_not_there_or_not_theirs(jobs):
    answer = jobs.cloud.post(JOBS, jobs.body(serviceAccount=RUNTIME.replace("runtime", "nobody")), jobId="nobody")
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    developer = jobs.cloud.as_account(jobs.cloud.account("job-maker"))
    jobs.cloud.grant_project("roles/run.developer", "serviceAccount:job-maker@bezel-local.iam.gserviceaccount.com")
    assert "iam.serviceaccounts.actAs" in developer.post(JOBS, jobs.body(), jobId="theirs").json()["error"]["message"]
    assert jobs.cloud.get(f"{JOBS}/theirs").status_code == 404


def test_what_the_platform_tells_a_task_cannot_be_set(jobs):
    body = jobs.body(env=[{"name": "CLOUD_RUN_TASK_INDEX", "value": "4"}])
    answer = jobs.cloud.post(JOBS, body, jobId="refused")
    assert answer.status_code == 400
    assert "CLOUD_RUN_TASK_INDEX is reserved" in answer.json()["error"]["message"]


def test_a_name_is_given_once_and_parallelism_is_no_more_than_the_tasks(jobs):
    jobs.create("twice", "--exit=0")
    assert jobs.cloud.post(JOBS, jobs.body(), jobId="twice").json()["error"]["status"] == "ALREADY_EXISTS"
    body = jobs.body(tasks=2)
    body["template"]["parallelism"] = 3
    answer = jobs.cloud.post(JOBS, body, jobId="refused")
    assert "3 is not between 0 and task_count 2" in answer.json()["error"]["message"]


def test_a_job_without_its_image_is_there_and_cannot_be_run(jobs):
    body = jobs.body()
    body["template"]["template"]["containers"][0]["image"] = f"{REGION}-docker.pkg.dev/bezel-local/hub/nothing:1"
    jobs.made.append("imageless")
    operation = jobs.cloud.finish("run/v2", jobs.cloud.post(JOBS, body, jobId="imageless"))
    assert operation["error"]["code"] == 5
    assert jobs.job("imageless")["terminalCondition"]["reason"] == "CONTAINER_MISSING"
    answer = jobs.cloud.post(f"{JOBS}/imageless:run")
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")


def test_a_run_needs_its_permission_and_overrides_another_one(jobs):
    jobs.create("guarded", "--exit=0")
    stranger = jobs.cloud.as_account(jobs.cloud.account("job-runner"))
    assert stranger.post(f"{JOBS}/guarded:run").status_code == 403
    jobs.cloud.grant_project("roles/run.invoker", "serviceAccount:job-runner@bezel-local.iam.gserviceaccount.com")
    assert stranger.post(f"{JOBS}/guarded:run", {"overrides": {"taskCount": 2}}).status_code == 403
    assert stranger.post(f"{JOBS}/guarded:run").status_code == 200
    assert stranger.delete(f"{JOBS}/guarded").status_code == 403

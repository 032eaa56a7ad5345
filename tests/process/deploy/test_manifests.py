"""deploy/kubernetes: checked by the tools that read it, without a cluster."""
import os
import re
import shutil
import subprocess

import pytest

from harness import BIN, ROOT

KUBERNETES = ROOT / "deploy/kubernetes"


def run(*words, folder=ROOT, **environment):
    """Returns the output of a command, which must succeed."""
    done = subprocess.run(list(map(str, words)), cwd=folder, env={**os.environ, **environment}, text=True, timeout=300,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def manifests():
    return [path for path in sorted(KUBERNETES.rglob("*.yaml"))
            if path.name not in ("kustomization.yaml", "pod-monitor.yaml")]  # which Kubernetes itself does not define


@pytest.mark.skipif(not shutil.which("kubernetes-validate"), reason="needs kubernetes-validate (of PyPI)")
def test_kubernetes_knows_each_field():
    out = run("kubernetes-validate", "--strict", *manifests())
    assert out.count(" passed for resource ") == 11, out


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("folder,kinds", [
    (".", {"Namespace", "Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "PodMonitor"}),
    ("dpu", {"Namespace", "DaemonSet", "Service", "NetworkPolicy", "Secret", "PodMonitor"})])
def test_kustomize_makes_all_of_it(tmp_path, folder, kinds):
    copy = shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    (copy / "dpu/comch.key").write_bytes(os.urandom(32))
    for file in copy.rglob("kustomization.yaml"):
        file.write_text(file.read_text().replace("# - ", "- "))  # PodMonitor too
    out = run("kubectl", "kustomize", copy / folder)
    assert set(re.findall(r"^kind: (\w+)$", out, re.MULTILINE)) == kinds
    [(name, used)] = {*zip(re.findall(r"^  name: (comch-key-\w+)$", out, re.MULTILINE),
                           re.findall(r"secretName: (\S+)$", out, re.MULTILINE))} or [("", "")]
    assert name == used and bool(name) == (folder == "dpu")


def test_no_key_is_in_the_tree():
    assert not list((ROOT / "deploy").rglob("*.key"))


def test_the_key_of_a_secret_can_be_read(stage, tmp_path):
    """As the kubelet makes it, for the users and groups of the manifest."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    text = (KUBERNETES / "dpu/server.yaml").read_text()
    found = {name: re.search(rf"{name}: \[?(\d+)", text)[1]
             for name in ("runAsUser", "runAsGroup", "supplementalGroups", "defaultMode")}
    assert "fsGroup:" not in text
    key = stage.folder / "comch.key"
    key.write_bytes(os.urandom(32))
    key.chmod(int(found["defaultMode"], 8))
    stage.folder.chmod(0o755)
    run("setpriv", "--reuid", found["runAsUser"], "--regid", found["runAsGroup"], "--groups", found["supplementalGroups"],
        BIN / "offload-server", "--comch", "tcp:127.0.0.1:1", "--comch-key-file", key, "--check-config")

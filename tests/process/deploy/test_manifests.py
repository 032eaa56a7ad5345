"""deploy/kubernetes and deploy/ansible: checked by the tools that read them, without a cluster and other machines."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness import BIN, ROOT

KUBERNETES = ROOT / "deploy/kubernetes"
ANSIBLE = ROOT / "deploy/ansible"


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


needs_ansible = pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="needs ansible")


@needs_ansible
def test_ansible_reads_the_playbook(tmp_path):
    run("ansible-playbook", "-i", "inventory.example.yml", "--syntax-check", "site.yml", folder=ANSIBLE,
        HOME=str(tmp_path))


@pytest.mark.skipif(not shutil.which("ansible-lint"), reason="needs ansible-lint")
def test_ansible_lint_finds_nothing(tmp_path):
    copy = shutil.copytree(ANSIBLE, tmp_path / "ansible")
    run("ansible-lint", "--offline", "--profile", "production", folder=copy, HOME=str(tmp_path))


@needs_ansible
@pytest.mark.parametrize("role,options", [
    ("server", {"server-listen-port": 12345, "listen-address": "::", "comch": "tcp:[::]:12346"}),
    ("worker", {"backend": "cpu", "comch": "tcp:127.0.0.1:12346", "stand-by": True})])
def test_the_configuration_of_the_role_is_valid(tmp_path, role, options):
    for name in ("a.comch.key", "a.comch-old.key"):
        (tmp_path / name).write_bytes(os.urandom(32))
        (tmp_path / name).chmod(0o600)
    file, program = tmp_path / "options.toml", BIN / f"offload-{role}"
    variables = {"offload_role": role, "offload_options": options, "offload_key_file": "x", "offload_instance": "a",
                 "offload_folder": str(tmp_path), "ansible_python_interpreter": sys.executable}
    template = ANSIBLE / "roles/offload/templates/options.toml.j2"
    run("ansible", "all", "-i", "localhost,", "-c", "local", "-m", "ansible.builtin.template", "-a",
        f"src={template} dest={file} mode=0644 validate='{program} --config %s --check-config'",
        "-e", json.dumps(variables), HOME=str(tmp_path))
    assert "comch-key-file = [" in file.read_text()

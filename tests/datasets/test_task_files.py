import pytest
from kedro.io import DatasetError

from agent_r1.datasets import TaskFilesDataset
from agent_r1.experiments.session import Session
from agent_r1.extras import MissingExtraError
from agent_r1.lineage import ManifestStore
from agent_r1.storage.hashing import file_sha256


def test_what_was_asked_for_since_the_last_load_is_known(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    dataset = TaskFilesDataset(filepath=str(tmp_path))
    files = dataset.load()
    assert dataset.files_used() == []
    assert files.find("a.json") == files.find("a.json") == tmp_path / "a.json"
    files.find("not_there.json")  # the loader says so
    assert dataset.files_used() == [tmp_path / "a.json"]
    dataset.load()
    assert dataset.files_used() == []


def test_raw_data_is_not_written(tmp_path):
    with pytest.raises(DatasetError, match="raw data"):
        TaskFilesDataset(filepath=str(tmp_path)).save("x")


def test_a_file_of_a_package_that_is_absent_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    files = TaskFilesDataset(filepath=str(tmp_path)).load()
    with pytest.raises(MissingExtraError, match=r"'fanoutqa'.*pip install -e '.\[fanoutqa\]'"):
        files.find("fanoutqa:data/dev.json")


def test_the_manifest_names_the_files_that_the_node_read(project):
    path = project.path / "data/01_raw/benchmark.json"
    path.write_text("[]")
    with Session(project.path, {"experiment": "x"}) as session:
        session.run("prepare_tasks", ["prepare_tasks"])
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    (read,) = [i for i in store.newest("prepare_tasks").inputs if i.dataset == "task_files"]
    assert (read.path, read.sha256) == ("data/01_raw/benchmark.json", file_sha256(path))
    assert read.version is None
    assert read.manifest is None

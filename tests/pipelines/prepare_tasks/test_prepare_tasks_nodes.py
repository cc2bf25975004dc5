import pandas as pd
import pytest

from agent_r1 import schemas, tables
from agent_r1.datasets import ArrowParquetDataset
from agent_r1.tasks.knowledge_base import FOLDER, KnowledgeBaseError
from agent_r1.tasks.parameters import TasksParameters
from tests.support import REPOSITORY
from tests.support.nodes import prepare_tasks

SMALL = {"sizes": dict.fromkeys(schemas.SPLITS, 44)}


@pytest.fixture(scope="module")
def knowledge_base():
    """As the catalog loads it."""
    return [
        ArrowParquetDataset(filepath=str(REPOSITORY / FOLDER / f"{name}.parquet")).load()
        for name in ("countries", "cities", "elements")
    ]


@pytest.fixture(scope="module")
def prepared(knowledge_base):
    return prepare_tasks(*knowledge_base, SMALL)


def test_both_tables_fit_their_schemas(prepared):
    tasks, documents = prepared
    tables.to_arrow(tasks, "tasks")
    tables.to_arrow(documents, "documents")
    assert tasks.groupby("split").size().to_dict() == dict.fromkeys(schemas.SPLITS, 44)


def test_the_same_files_give_the_same_tables(knowledge_base, prepared):
    again = prepare_tasks(*knowledge_base, TasksParameters.read(SMALL, "tasks"))
    for table, other in zip(prepared, again, strict=True):
        pd.testing.assert_frame_equal(table, other)


def test_another_split_seed_holds_other_countries_out(knowledge_base, prepared):
    other, _ = prepare_tasks(*knowledge_base, SMALL | {"split_seed": 2})
    held_out = [set(t.loc[t["split"] == "held_out", "task_id"]) for t in (prepared[0], other)]
    assert held_out[0] != held_out[1]


def test_a_malformed_file_is_named_with_its_row(knowledge_base):
    countries, cities, elements = knowledge_base
    broken = cities.astype({"name": object})
    broken.loc[17, "name"] = None
    with pytest.raises(KnowledgeBaseError, match=r"cities\.parquet: row 17, key 'name'"):
        prepare_tasks(countries, broken, elements, SMALL)

"""The catalog's datasets: tables, checkpoints, JSON, task files, the engine, and a history.

All of them commit atomically: a save that fails leaves nothing that can be loaded.
"""

from agent_r1.datasets.arrow_parquet import ArrowParquetDataset
from agent_r1.datasets.checkpoint import CheckpointDataset
from agent_r1.datasets.engine import EngineDataset
from agent_r1.datasets.history import History, HistoryDataset
from agent_r1.datasets.report_files import FigureDataset, TextDataset
from agent_r1.datasets.strict_json import StrictJSONDataset
from agent_r1.datasets.task_files import TaskFilesDataset

__all__ = [
    "ArrowParquetDataset",
    "CheckpointDataset",
    "EngineDataset",
    "FigureDataset",
    "History",
    "HistoryDataset",
    "StrictJSONDataset",
    "TaskFilesDataset",
    "TextDataset",
]

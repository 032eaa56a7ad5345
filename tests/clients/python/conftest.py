"""The Python client is tested where it lies, not installed."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "clients/python/src"))

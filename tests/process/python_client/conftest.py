"""The Python client is tested where it lies, not installed."""
import sys

from harness import ROOT

sys.path.insert(0, str(ROOT / "clients/python/src"))

"""What the tests that look at pages share: the browser's path, axe-core, and the ways of looking."""

import os
import shutil
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_MODULES = Path(__file__).parents[1] / "src" / "explorer" / "node_modules"
AXE = Path(os.environ.get("AXE_CORE", _MODULES / "axe-core" / "axe.min.js"))
LOOKS = [(width, theme) for width in (1280, 390) for theme in ("light", "dark")]

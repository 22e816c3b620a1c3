"""The registry that is a folder keeps the contract of all registries."""

import shutil

import pytest

from dynsnap.project import FolderRegistry
from tests.project.registry_contract import RegistryContract


class TestFolderRegistry(RegistryContract):
    @pytest.fixture
    def opened(self, tmp_path):
        return lambda: FolderRegistry(tmp_path / "registry")

    def change(self, registry, number, name, content):
        file = registry.path / f"generations/{number:04}" / name
        file.chmod(0o644)
        file.write_text(content)

    def remove(self, registry, number):
        shutil.rmtree(registry.path / f"generations/{number:04}")

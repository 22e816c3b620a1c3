"""What must hold for every registry: a class of tests, which each kind of registry derives."""

import pytest

from dynsnap.errors import FileError
from tests.messages import naming


class RegistryContract:
    """Tests of a registry; a subclass says how one is made, and how its files are damaged."""

    @pytest.fixture
    def opened(self, tmp_path):
        """A function that opens the same registry, empty at first, again and again."""
        raise NotImplementedError

    def change(self, registry, number, name, content):
        """Replace a file of a generation behind the registry's back."""
        raise NotImplementedError

    def remove(self, registry, number):
        """Remove a generation behind the registry's back."""
        raise NotImplementedError

    @pytest.fixture
    def registry(self, opened):
        return opened()

    @pytest.fixture
    def add(self, registry, tmp_path):
        """A function that registers a generation of two files."""

        def add(retrain, content="1.5"):
            model, predictions = tmp_path / "m", tmp_path / "p"
            model.write_text(content)
            predictions.write_text(f"{retrain},{content}\n")
            return registry.register(
                retrain,
                {"model.bin": model, "predictions.parquet": predictions},
                model="model.bin",
                about={"period": retrain, "seconds": 1.5},
            )

        return add

    def test_an_empty_registry_has_nothing(self, registry):
        assert registry.numbers() == [] and registry.deployed() is None
        with pytest.raises(FileError, match=naming("1", "none")):
            registry.get(1)

    def test_a_generation_is_kept_as_it_was_registered(self, registry, opened, add):
        first = add("2024-01-01")
        second = add("2024-01-08", "2.5")
        assert 1 <= first.number < second.number
        again = opened()
        assert again.numbers() == [first.number, second.number]
        assert again.get(second.number) == second
        assert (second.retrain, second.model) == ("2024-01-08", "model.bin")
        assert second.about == {"period": "2024-01-08", "seconds": 1.5}
        found, folder = again.checked(second.number)
        assert found == second and (folder / "model.bin").read_text() == "2.5"
        assert {"model.bin", "predictions.parquet"} <= set(found.files)
        assert registry.deployed() is None  # registering deploys nothing

    def test_a_retrain_registers_once(self, registry, add):
        assert add("2024-01-01") == add("2024-01-01")
        assert len(registry.numbers()) == 1

    def test_the_pointer_moves_and_every_move_is_known(self, registry, opened, add):
        one, two = add("2024-01-01").number, add("2024-01-08", "2").number
        registry.deploy(one, way="retrain", why="2024-01-01")
        made = registry.deploy(two, way="retrain", why="2024-01-08")
        assert opened().deployed() == made
        assert (made.generation, made.before) == (two, one)
        registry.deploy(one, way="rollback", why="slow")
        found = opened().deployed()
        assert (found.generation, found.before) == (one, None)
        assert [(move.to, move.way, move.why) for move in found.moves] == [
            (one, "retrain", "2024-01-01"),
            (two, "retrain", "2024-01-08"),
            (one, "rollback", "slow"),
        ]

    @pytest.mark.parametrize("name", ["model.bin", "predictions.parquet", "generation.json"])
    def test_a_changed_file_is_found_and_not_deployed(self, registry, opened, add, name):
        one, two = add("2024-01-01").number, add("2024-01-08", "2").number
        registry.deploy(one, way="retrain", why="")
        self.change(registry, two, name, "{}")
        for look in (
            registry.checked,
            lambda number: registry.deploy(number, way="promote", why=""),
        ):
            with pytest.raises(FileError, match=naming(name)):
                look(two)
        assert opened().deployed().generation == one
        assert registry.checked(one)[0].number == one

    def test_a_file_that_changed_under_the_pointer_is_found(self, registry, add):
        one = add("2024-01-01").number
        registry.deploy(one, way="retrain", why="")
        self.change(registry, one, "model.bin", "9.5")
        assert registry.deployed().generation == one
        with pytest.raises(FileError, match=naming("model.bin", "promote")):
            registry.checked(one)

    def test_a_generation_that_is_gone_is_named_and_its_number_not_used_again(
        self, registry, opened, add
    ):
        one, two = add("2024-01-01").number, add("2024-01-08", "2").number
        registry.deploy(one, way="retrain", why="")
        registry.deploy(two, way="retrain", why="")
        registry.deploy(one, way="rollback", why="")
        self.remove(registry, two)
        assert opened().numbers() == [one]
        with pytest.raises(FileError, match=naming(str(two), str(one))):
            registry.deploy(two, way="promote", why="")
        assert registry.deployed().generation == one
        assert add("2024-01-15", "3").number > two

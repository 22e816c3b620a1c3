from tests.cli.helpers import dynsnap, refused, table


def test_a_bound_that_does_not_exist_ends_with_three_under_every_class_too(tmp_path):
    rows = [f"{number},{'ab'[number % 2]},{'ab'[number % 2]}" for number in range(60)]
    new = table(tmp_path / "new.csv", rows)
    old = table(tmp_path / "old.csv", ["0,a,b", *rows[1:]])  # one gained, in class a alone

    def rules(text):
        path = tmp_path / "gate.toml"
        path.write_text(text)
        return path

    rule = '[[rule]]\nmetric = "win_loss_ratio"\nat_least = 0.01\nclass = "*"\n'
    assert dynsnap("gate", old, new, "--rules", rules(rule)).exit_code == 0
    bound = rules(rule + 'on = "bound"\n')
    assert "class b" in refused("gate", old, new, "--rules", bound, code=3)
    bound = rules('[[rule]]\nmetric = "composite"\nat_least = 0.1\nconfidence = 0.999\n')
    said = refused("gate", old, new, "--rules", bound, code=3)
    assert "resamples" in said
    assert "1,999" in said
    assert dynsnap("gate", old, new, "--rules", bound, "--resamples", 1999).exit_code == 0

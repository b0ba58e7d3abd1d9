"""Lines that the build of the Pulumi CLI leaves out of its source."""

import pytest

from tools.toolchain.go_text import MissingLinesError, remove_lines

SOURCE = """\
import (
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"   // driver for s3://
)

func open(scheme string) {
	if scheme == azureblob.Scheme {
		if debug {
			log()
		}
		register(azureblob.Opener{
			Options: 1,
		})
	}
	use(gcsblob.Scheme)
}
"""


def test_removes_the_line_that_begins_so_and_no_other():
    assert remove_lines(SOURCE, ['_ "gocloud.dev/blob/s3blob"']) == SOURCE.replace(
        '\t_ "gocloud.dev/blob/s3blob"   // driver for s3://\n', ""
    )


def test_keeps_a_text_from_which_nothing_is_removed():
    assert remove_lines(SOURCE, []) == SOURCE


def test_removes_a_block_to_its_own_closing_brace():
    left = remove_lines(SOURCE, ["if scheme == azureblob.Scheme {", '"gocloud.dev/blob/azureblob"'])
    assert "azureblob" not in left
    assert left.endswith("func open(scheme string) {\n\tuse(gcsblob.Scheme)\n}\n")


def test_removes_a_block_within_a_block_only():
    left = remove_lines(SOURCE, ["if debug {"])
    assert "log()" not in left
    assert "register(azureblob.Opener{" in left


@pytest.mark.parametrize("beginning", ['"gocloud.dev/blob/azblob"', "azureblob.Scheme", '"gocloud.dev/blob/'])
def test_refuses_a_beginning_of_no_line_or_of_several(beginning):
    with pytest.raises(MissingLinesError) as caught:
        remove_lines(SOURCE, ['"gocloud.dev/blob/gcsblob"', beginning])
    assert caught.value.beginnings == (beginning,)


def test_names_all_missing_beginnings_at_once():
    with pytest.raises(MissingLinesError) as caught:
        remove_lines(SOURCE, ["one", '"gocloud.dev/blob/gcsblob"', "two"])
    assert caught.value.beginnings == ("one", "two")

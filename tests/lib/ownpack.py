"""A pack of a user's, as text: `pack.toml`, and an entry for a regex (a TOML text, quotes included)."""

PACK = 'id = "mine"\nengine = "vllm"\nversion = "1"\n'
ENTRY = """[[pattern]]
id = "mine.linear.evil"
literal = "EVIL"
regex = {regex}
emits = "linear.kernel"
[[pattern.site]]
means = "selected"
"""

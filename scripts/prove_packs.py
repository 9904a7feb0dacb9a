#!/usr/bin/env python3
"""Prove a pack over its whole range, and write what that shows: the ledger and the pages of `docs/packs/`.

    scripts/prove_packs.py --cache DIR [--jobs N]            fetch and verify every release, write ledger and pages
    scripts/prove_packs.py --cache DIR --releases 0.31.0 …   fetch and verify these only, write nothing
    scripts/prove_packs.py --cache DIR --add 0.34.0          fetch and verify a new release, add it to ledger and pages
    scripts/prove_packs.py --engine sglang --sources FILE…   verify an engine of which not every release is at hand
    scripts/prove_packs.py --pages                           write the pages only

Sources come from the package index that pip is set up for: sdists, or a wheel where a release has none. They are
read, never installed or run, and stay in DIR. Exit 1 where a pattern is stale, too narrow or moved.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from logscan.packs import ledger, patterns_dir  # noqa: E402
from logscan.packs.fleet import pack_of, verify_all  # noqa: E402
from logscan.packs.load import load  # noqa: E402
from logscan.packs.page import page  # noqa: E402

PACKAGE = "vllm"


def fetch(package: str, releases: list[str], into: Path) -> list[str]:
    """Paths of the releases' sdists (or wheels), downloaded where they are not in `into` yet."""
    into.mkdir(parents=True, exist_ok=True)
    have = {
        r: p
        for r in releases
        for p in into.iterdir()
        if p.name == f"{package}-{r}.tar.gz" or p.name.startswith(f"{package}-{r}-")
    }
    missing = [r for r in releases if r not in have or have[r].suffix == ".part"]
    for release, link, session in _links(package, missing):
        target = into / link.filename
        print(f"fetching {link.filename}", file=sys.stderr)
        response = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
        response.raise_for_status()
        part = target.with_suffix(".part")
        with part.open("wb") as f:
            for chunk in response.iter_content(1 << 20):
                f.write(chunk)
        part.replace(target)
        have[release] = target
    return [str(have[r]) for r in releases]


def _links(package: str, releases: list[str]):
    """(release, link, session) through pip's own index client: `pip download` of an sdist would run its setup.py."""
    if not releases:
        return
    from pip._internal.commands import create_command

    command = create_command("download")
    options, _ = command.parse_args([package])
    with command.main_context():
        session = command.get_default_session(options)
        found: dict[str, list] = {}
        for candidate in command._build_package_finder(options, session).find_all_candidates(package):
            found.setdefault(str(candidate.version), []).append(candidate.link)
        for release in releases:
            links = found.get(release) or sys.exit(f"{package} {release} is not on the index")
            yield release, min(links, key=lambda link: not link.filename.endswith(".tar.gz")), session


def pages() -> None:
    """Write a page for each packaged pack."""
    for pack in load():
        known = ledger.read(patterns_dir() / pack.id / "verify" / "ledger.json")
        target = ROOT / "docs" / "packs" / f"{pack.id}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(pack, known), "utf-8")


def main() -> int:
    """Run as the module's docstring says; the exit code."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cache", type=Path)
    p.add_argument("--releases", nargs="*")
    p.add_argument("--add", nargs="+", default=[], metavar="RELEASE")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--pages", action="store_true")
    p.add_argument("--engine", default=PACKAGE)
    p.add_argument("--sources", nargs="*", help="these, and no others; the ledger names their releases")
    a = p.parse_args()
    if a.pages:
        pages()
        return 0
    if a.cache is None and not a.sources:
        p.error("--cache DIR: where the sources are kept; or --sources FILE…")
    pack = pack_of(a.engine)
    if unlisted := set(a.add) - set(pack.releases):
        p.error(f"{', '.join(sorted(unlisted))}: add it to `releases` in the pack.toml of {pack.id} first")
    wanted = a.add or a.releases or list(pack.releases)
    results = verify_all(a.engine, a.sources or fetch(a.engine, wanted, a.cache), jobs=a.jobs)
    bad = 0
    for r in results:
        counts = {kind: r.count(kind) for kind in ("proven", "stale", "too-narrow", "moved", "uncovered", "ignored")}
        print(r.version, json.dumps(counts))
        bad += counts["stale"] + (0 if a.sources else counts["too-narrow"] + counts["moved"])
        for f in r.findings:
            if f.kind not in ("proven", "ignored"):
                print(f"  {f.kind}: {f.pattern} {f.where} {f.level} {f.detail[:160]!r}")
    if not a.releases and not bad:
        path = patterns_dir() / pack.id / "verify" / "ledger.json"
        today = datetime.date.today().isoformat()
        if a.add:
            ledger.add(path, pack, results, today)
        else:
            ledger.write(path, pack, results, today, sample=bool(a.sources))
        pages()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

import { basename, dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { readSourceFiles } from "./source-files.ts";

const MAX_LINES = 400;

const files = readSourceFiles();
const paths = files.map(({ path }) => path);
const scripts = paths.filter((path) => /\.(ts|tsx|mjs)$/.test(path));

describe("a source file", () => {
  it(`holds one idea, in at most ${MAX_LINES} lines`, () => {
    const source = files.filter(({ path }) => /\.(ts|tsx|mjs|rs|sh|py|c)$/.test(path));
    const long = source.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
    expect(long.filter(({ lines }) => lines > MAX_LINES)).toEqual([]);
  });

  it("is named in kebab-case", () => {
    expect(
      scripts.filter((path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z-]+)*\.(ts|tsx|mjs)$/.test(basename(path))),
    ).toEqual([]);
  });

  it("is an index only at the root of a package or of its contract suites", () => {
    const indexes = scripts.filter((path) => /^index\./.test(basename(path)));
    expect(indexes.filter((path) => !/^packages\/[^/]+\/src\/(testing\/)?index(\.test)?\.ts$/.test(path))).toEqual([]);
  });

  it("contains no notes about unfinished work", () => {
    expect(files.filter(({ text }) => /TO[D]O|FIX[M]E|X[X]X/.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

describe("a folder", () => {
  it("is named after a resource or a phase, not utils, helpers, common or types", () => {
    const drawers = /^(utils?|helpers?|commons?|types)$/;
    expect(
      paths.filter((path) =>
        dirname(path)
          .split("/")
          .some((name) => drawers.test(name)),
      ),
    ).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { PullFailure, PullReader } from "./pull-reader.ts";

function readAll(lines: readonly object[]) {
  const reader = new PullReader("app:1");
  return lines.map((line) => {
    const progress = reader.read(JSON.stringify(line));
    return progress && [progress.layer, progress.status, progress.doneBytes, progress.totalBytes];
  });
}

describe("the progress messages of a pull", () => {
  it("are converted to the progress of layers", () => {
    const steps = readAll([
      { status: "Pulling from team/app", id: "1" },
      { status: "Pulling fs layer", progressDetail: {}, id: "a" },
      { status: "Already exists", progressDetail: {}, id: "b" },
      { status: "Downloading", progressDetail: { current: 10, total: 100 }, id: "a" },
      { status: "Download complete", progressDetail: {}, id: "a" },
      { status: "Extracting", progressDetail: { current: 60, total: 100 }, id: "a" },
      { status: "Pull complete", progressDetail: {}, id: "a" },
      { status: "Digest: sha256:abc" },
    ]);
    expect(steps).toEqual([
      undefined,
      ["a", "waiting", 0, undefined],
      ["b", "complete", 0, undefined],
      ["a", "downloading", 10, 100],
      ["a", "downloading", 100, 100],
      ["a", "unpacking", 60, 100],
      ["a", "complete", 100, 100],
      undefined,
    ]);
  });

  it("ignore progress in seconds", () => {
    const steps = readAll([
      { status: "Downloading", progressDetail: { current: 10, total: 100 }, id: "a" },
      { status: "Extracting", progressDetail: { current: 3, units: "s" }, id: "a" },
    ]);
    expect(steps[1]).toEqual(["a", "unpacking", 0, 100]);
  });

  it("throw the error that they report", () => {
    expect(() => readAll([{ errorDetail: { message: "manifest unknown" }, error: "manifest unknown" }])).toThrow(
      new PullFailure("manifest unknown"),
    );
  });
});

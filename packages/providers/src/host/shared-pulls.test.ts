import type { PullProgress } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { SharedPulls } from "./shared-pulls.ts";

const STEP: PullProgress = { image: "app", layer: "a", status: "waiting", doneBytes: 0, totalBytes: undefined };

const { signal } = new AbortController();

/** Pulls whose work the test controls. */
function createPulls() {
  const pulls = new SharedPulls<string>();
  const starts: { readonly signal: AbortSignal; readonly report: (progress: PullProgress) => void }[] = [];
  const results: PromiseWithResolvers<string>[] = [];
  const work = (signal: AbortSignal, report: (progress: PullProgress) => void) => {
    const result = Promise.withResolvers<string>();
    signal.addEventListener("abort", () => result.reject(signal.reason));
    starts.push({ signal, report });
    results.push(result);
    return result.promise;
  };
  return { pulls, work, starts, results };
}

describe("SharedPulls", () => {
  it("runs one pull for all callers, and reports its progress to all of them", async () => {
    const { pulls, work, starts, results } = createPulls();
    const seen: string[] = [];
    const one = pulls.join("app", work, { signal, onProgress: () => seen.push("one") });
    const two = pulls.join("app", work, { signal, onProgress: () => seen.push("two") });
    starts[0]?.report(STEP);
    results[0]?.resolve("image");
    expect(await Promise.all([one, two])).toEqual(["image", "image"]);
    expect([starts.length, seen]).toEqual([1, ["one", "two"]]);
  });

  it("continues when one caller aborts", async () => {
    const { pulls, work, starts, results } = createPulls();
    const abort = new AbortController();
    const impatient = pulls.join("app", work, { signal: abort.signal });
    const patient = pulls.join("app", work, { signal });
    abort.abort();
    await expect(impatient).rejects.toMatchObject({ name: "AbortError" });
    expect(starts[0]?.signal.aborted).toBe(false);
    results[0]?.resolve("image");
    expect(await patient).toBe("image");
  });

  it("ends when the last caller aborts, and the next caller starts a new pull", async () => {
    const { pulls, work, starts, results } = createPulls();
    const abort = new AbortController();
    const first = pulls.join("app", work, { signal: abort.signal });
    abort.abort();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    expect(starts[0]?.signal.aborted).toBe(true);
    const second = pulls.join("app", work, { signal });
    results[1]?.resolve("image");
    expect(await second).toBe("image");
  });

  it("tries a failed pull again for the next caller", async () => {
    const { pulls, work, results } = createPulls();
    const first = pulls.join("app", work, { signal });
    results[0]?.reject(new Error("no"));
    await expect(first).rejects.toThrow("no");
    const second = pulls.join("app", work, { signal });
    results[1]?.resolve("image");
    expect(await second).toBe("image");
  });
});

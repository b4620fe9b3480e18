import { describe, expect, it } from "vitest";
import { runscRelease as providerRelease } from "../../packages/providers/src/host/runsc-release.ts";
import { isRecentRunsc, runscRelease } from "./runsc-release.mjs";

describe("a runsc on the PATH", () => {
  it.each([
    `runsc version ${runscRelease.version}\nspec: 1.2.1\n`,
    `runsc version release-${runscRelease.version}\nspec: 1.2.1\n`,
    "runsc version release-20261012.0\nspec: 1.2.1\n",
    "runsc version release-20270104\n",
  ])("is recent enough when it says %j", (output) => {
    expect(isRecentRunsc(output)).toBe(true);
  });

  it.each([
    "runsc version release-20220905.0\nspec: 1.0.2\n",
    "runsc version 0.0~20221219.0\n",
    "runsc version VERSION_MISSING\n",
    "runsc version google-592343123\n",
    "",
  ])("is not used when it says %j", (output) => {
    expect(isRecentRunsc(output)).toBe(false);
  });
});

it("builds the release that the gvisor provider looks for", () => {
  const { version, moduleVersion } = runscRelease;
  expect({ version, moduleVersion }).toEqual({ ...providerRelease });
});

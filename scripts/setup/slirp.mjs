import { join } from "node:path";
import { libraryPath, planTool, provideTool, toolRoot } from "./debian-tool.mjs";
import { findAnywhere } from "./programs.mjs";

/** @type {import("./debian-tool.mjs").DebianTool} */
const slirp = {
  name: "slirp4netns",
  title: "slirp4netns",
  purpose: "to compare networks with it.",
  packages: () => ["slirp4netns"],
  programs: ["usr/bin/slirp4netns"],
  install: { debian: "slirp4netns", fedora: "slirp4netns", arch: "slirp4netns", suse: "slirp4netns" },
  seconds: 10,
};

export function planSlirp() {
  return planTool(slirp, findAnywhere("slirp4netns"));
}

/** The machine's own slirp4netns, or Debian's in the cache, with the environment that it needs. */
export async function provideSlirp() {
  const installed = findAnywhere("slirp4netns");
  if (installed !== undefined) return { path: installed, env: process.env };
  await provideTool(slirp);
  const root = toolRoot(slirp);
  return { path: join(root, "usr/bin/slirp4netns"), env: { ...process.env, LD_LIBRARY_PATH: libraryPath(root) } };
}

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { repoDirectory } from "./directories.mjs";
import { withLock } from "./lock.mjs";
import { matchesLock } from "./lock-file.mjs";
import { findProgram, isProgram } from "./programs.mjs";
import { reportWaiting } from "./progress.mjs";

const projectNode = join(repoDirectory, "node_modules/.bin/node");

/** @returns {import("./plan.mjs").Plan} */
export function planPackages() {
  if (isInstalled()) return { detail: "as package-lock.json says", problems: [] };
  if (findProgram("npm") === undefined) {
    const remedy = "Install it with Node.js from https://nodejs.org/en/download.";
    return { detail: "missing", problems: [{ missing: "npm, to install Sandpiper's packages.", remedy }] };
  }
  return { detail: "installed", problems: [], announcement: { name: "npm packages", seconds: 20 }, work: install };
}

async function install() {
  const lockName = createHash("sha256").update(repoDirectory).digest("hex").slice(0, 16);
  const installOnce = async () => (isInstalled() ? undefined : npmCi());
  await withLock(`packages-${lockName}`, installOnce, () => reportWaiting("packages", "install the npm packages"));
}

async function npmCi() {
  // No package needs its scripts: they only build native parts that Sandpiper does not use.
  // An older Node makes npm warn that some packages want the newer Node that npm is about to install.
  const quiet = ["--loglevel=error", "--no-audit", "--no-fund"];
  await runCommand({
    title: "Installing npm packages",
    argv: ["npm", "ci", ...quiet, "--ignore-scripts", "--include=dev", "--include=optional"],
    cwd: repoDirectory,
    hint: "Check the network and npm's registry setting, then run the same command again.",
  });
  await runCommand({
    title: "Trying the Node.js that npm installed",
    argv: [projectNode, "--version"],
    cwd: repoDirectory,
    hint: "It is built for Linux with glibc on x86-64 and arm64: use such a distribution (Debian, Ubuntu, Fedora, …).",
  });
}

function isInstalled() {
  try {
    const wanted = JSON.parse(readFileSync(join(repoDirectory, "package-lock.json"), "utf8"));
    // npm writes this file last, so an interrupted installation does not have it.
    const installed = JSON.parse(readFileSync(join(repoDirectory, "node_modules/.package-lock.json"), "utf8"));
    return isProgram(projectNode) && matchesLock(wanted.packages, installed.packages);
  } catch {
    return false;
  }
}

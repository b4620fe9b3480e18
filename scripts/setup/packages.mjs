import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { findProgram, isProgram } from "./find-program.mjs";
import { withLock } from "./lock.mjs";
import { matchesLock } from "./lock-file.mjs";
import { repoDirectory } from "./repo-directory.mjs";

/** @returns {import("./plan.d.ts").Plan} */
export function planPackages() {
  if (isInstalled()) return { detail: "as package-lock.json says", problems: [] };
  if (findProgram("npm") === undefined) {
    const remedy = "Install it with Node.js from https://nodejs.org/en/download.";
    return { detail: "missing", problems: [{ missing: "npm, to install Sandpiper's packages.", remedy }] };
  }
  return { detail: "installed", problems: [], work: install };
}

async function install() {
  const lockName = createHash("sha256").update(repoDirectory).digest("hex").slice(0, 16);
  const onWait = () => console.error("  ▸ Waiting for another set-up of this clone to install the packages");
  await withLock(`packages-${lockName}`, async () => (isInstalled() ? undefined : npmCi()), onWait);
}

async function npmCi() {
  // No package needs its scripts: they would only build native parts that nothing here uses.
  // Under an older Node npm warns that some packages want a newer one, which is the one it is about to install.
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

const projectNode = join(repoDirectory, "node_modules/.bin/node");

function isInstalled() {
  try {
    const wanted = JSON.parse(readFileSync(join(repoDirectory, "package-lock.json"), "utf8"));
    // npm writes this file last, so an installation that was cut short does not have it.
    const installed = JSON.parse(readFileSync(join(repoDirectory, "node_modules/.package-lock.json"), "utf8"));
    return isProgram(projectNode) && matchesLock(wanted.packages, installed.packages);
  } catch {
    return false;
  }
}

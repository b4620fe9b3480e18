import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { repoDirectory } from "./directories.mjs";
import { installCommand } from "./host.mjs";
import { findProgram, isProgram, outputOf } from "./programs.mjs";
import { isReporting, reportComplete } from "./progress.mjs";

const agentDirectory = join(repoDirectory, "agent");
const binaryDirectory = join(agentDirectory, "target/release");
const agentBinary = join(binaryDirectory, "sandpiper-agent");

/** @returns {import("./plan.mjs").Plan} */
export function planAgent() {
  const announcement = isProgram(agentBinary) ? undefined : { name: "agent", seconds: 30 };
  // Cargo finds out in a few hundredths of a second whether the agent has changed.
  return { detail: agentBinary, problems: findProblems(), announcement, work: build };
}

async function build() {
  await runCommand({
    title: "Building the agent",
    argv: ["cargo", "build", "--release", "--locked"],
    cwd: agentDirectory,
    describe: (line) => /^\s+(Compiling|Downloaded|Downloading) (.*)$/.exec(line)?.slice(1, 3).join(" ").toLowerCase(),
    work: { part: "agent", status: "building" },
    hint: "Fix the error above, then run the same command again.",
  });
  linkBinaries();
  if (isReporting) reportComplete("agent", agentBinary);
}

/** Links the binaries of the named target, which cargo puts elsewhere, into the directory where the others look for them. */
function linkBinaries() {
  const targetDirectory = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-gnu/release`;
  mkdirSync(binaryDirectory, { recursive: true });
  for (const name of readdirSync(join(agentDirectory, "target", targetDirectory))) {
    const link = join(binaryDirectory, name);
    if (/^sandpiper-[a-z]+$/.test(name) && !isProgram(link)) symlinkSync(join("..", targetDirectory, name), link);
  }
}

function findProblems() {
  const cargo = findProgram("cargo");
  const version = oldestRust();
  if (cargo === undefined) {
    return [{ missing: `cargo, to build the agent (Rust ${version} or newer).`, remedy: installRust(version) }];
  }
  // After a first build, the compiler and the linker are known to work.
  if (isProgram(agentBinary)) return [];
  return [...findRustProblem(cargo, version), ...findLinkerProblem()];
}

function oldestRust() {
  return /^rust-version = "(\d+\.\d+)/m.exec(readFileSync(join(agentDirectory, "Cargo.toml"), "utf8"))?.[1] ?? "1.95";
}

/**
 * @param {string} cargo
 * @param {string} oldest
 */
function findRustProblem(cargo, oldest) {
  const found = /\d+\.\d+/.exec(outputOf(cargo, ["--version"]))?.[0] ?? "0.0";
  if (Number(found.split(".")[1]) >= Number(oldest.split(".")[1])) return [];
  const missing = `Rust ${oldest} or newer, to build the agent; ${cargo} is ${found}.`;
  return [{ missing, remedy: installRust(oldest) }];
}

/** @param {string} version */
function installRust(version) {
  if (findProgram("rustup") !== undefined) {
    return `Run: rustup toolchain install ${version}.0 -c clippy -c rustfmt && rustup default ${version}.0`;
  }
  const options = `-y --profile minimal --component clippy --component rustfmt --default-toolchain ${version}.0`;
  return `Run: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- ${options}\nand open a new shell.`;
}

function findLinkerProblem() {
  const compiler = findProgram("cc");
  // The compiler prints a path when it has the file, and the bare name when it does not.
  if (compiler !== undefined && outputOf(compiler, ["-print-file-name=libc.a"]).startsWith("/")) return [];
  const remedy = installCommand({
    debian: "gcc libc6-dev",
    fedora: "gcc glibc-static",
    arch: "gcc glibc",
    suse: "gcc glibc-devel-static",
  });
  return [{ missing: "A C linker and a static C library, to link the agent.", remedy }];
}

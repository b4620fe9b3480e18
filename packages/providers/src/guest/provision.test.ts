import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PullProgress } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../host/testing/shared.ts";
import { type Part, provisionBy } from "./provision.ts";

const directory = sharedDirectory("provision");

const patient = () => new AbortController().signal;

/** A set-up that runs the given script. */
async function setUpThat(name: string, script: string) {
  const path = join(directory, `${name}.mjs`);
  const say = "const say = (line) => console.log(JSON.stringify(line));";
  await writeFile(path, `import { appendFileSync, existsSync, writeFileSync } from "node:fs";\n${say}\n${script}`);
  return provisionBy(path);
}

describe("provision", () => {
  it("reports progress like the layers of an image", async () => {
    const provision = await setUpThat(
      "progress",
      `say({ part: process.argv.slice(2).join(" "), status: "downloading", doneBytes: 1, totalBytes: 2 });
       say({ part: "kernel", status: "complete", doneBytes: 5 });`,
    );
    const heard: PullProgress[] = [];
    await provision(["qemu", "kernel"], { signal: patient(), onProgress: (progress) => heard.push(progress) });
    const image = "the image of virtual machines";
    expect(heard).toEqual([
      { image, layer: "--report qemu kernel", status: "downloading", doneBytes: 1, totalBytes: 2 },
      { image, layer: "kernel", status: "complete", doneBytes: 5, totalBytes: undefined },
    ]);
  });

  it("reports everything that is missing, each with its remedy", async () => {
    const provision = await setUpThat(
      "missing",
      `say({ problems: [{ missing: "QEMU.", remedy: "Run: one" }, { missing: "A kernel.", remedy: "Copy two" }] });
       process.exitCode = 1;`,
    );
    await expect(provision(["qemu"], { signal: patient() })).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "set_up_impossible",
      message: expect.stringContaining("QEMU. A kernel."),
      hint: "Run: one\nCopy two",
    });
  });

  it("reports the last lines of a failing set-up command", async () => {
    const text = "Downloading: `apt-get` exited with 100\\n  │ Could not resolve\\nCheck the network.";
    const provision = await setUpThat("failure", `say({ error: "${text}" }); process.exitCode = 1;`);
    await expect(provision(["qemu"], { signal: patient() })).rejects.toMatchObject({
      reason: "set_up_failed",
      message: expect.stringContaining("Could not resolve"),
      hint: "Check the network.",
    });
  });

  it("runs set-up once for all callers, and ends it when the last of them aborts", async () => {
    const [starts, end, go] = ["starts", "end", "go"].map((name) => join(directory, name)) as [string, string, string];
    const provision = await setUpThat(
      "long",
      `appendFileSync(${JSON.stringify(starts)}, "x");
       process.on("SIGTERM", () => { writeFileSync(${JSON.stringify(end)}, "ended"); process.exit(1); });
       say({ part: "qemu", status: "downloading" });
       setInterval(() => {
         if (existsSync(${JSON.stringify(go)})) say({ part: "qemu", status: "unpacking" });
       }, 5);`,
    );
    const [one, other] = [new AbortController(), new AbortController()];
    const [started, continued] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = provision(["qemu"], { signal: one.signal, onProgress: () => started.resolve() });
    const onProgress = ({ status }: PullProgress) => status === "unpacking" && continued.resolve();
    const second = provision(["qemu"], { signal: other.signal, onProgress });
    const outcomes = Promise.allSettled([first, second]);
    await started.promise;
    one.abort();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    await writeFile(go, "");
    await continued.promise;
    await expect(readFile(end)).rejects.toMatchObject({ code: "ENOENT" });
    other.abort();
    await outcomes;
    await expect.poll(() => readFile(end, "utf8").catch(() => "")).toBe("ended");
    expect(await readFile(starts, "utf8")).toBe("x");
  });

  it("asks only for steps that set-up has", async () => {
    const parts: Record<Part, true> = { agent: true, qemu: true, kernel: true, image: true, "docker-image": true };
    const source = await readFile(new URL("../../../../scripts/setup.mjs", import.meta.url), "utf8");
    for (const part of Object.keys(parts)) expect(source).toMatch(new RegExp(`^  "?${part}"?: plan`, "m"));
  });
});

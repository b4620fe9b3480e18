import { existsSync } from "node:fs";
import type { NetworkBody } from "@sandpiper/protocol";
import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { type ClientProgram, clientEnv, clientPrograms } from "./client-programs.ts";
import { trustAuthority, useNetworkBed } from "./shared-bed.ts";
import { addresses } from "./world/addresses.ts";

const bed = await useNetworkBed({ daemons: ["postgres", "sshd"] });
const client = bed.node.client();
const LAST_LINES = 4;

async function create(network: NetworkBody): Promise<Sandbox> {
  const sandbox = await client.sandboxes.create({ network, env: clientEnv });
  await trustAuthority(sandbox, bed);
  return sandbox;
}

/** Runs a program and returns the end of its output. */
async function run(sandbox: Sandbox, { script, user, prepare, prints }: ClientProgram): Promise<string> {
  await prepare?.(sandbox, bed.world);
  const { exitCode, stdout, stderr } = await sandbox.exec(["bash", "-c", script], {
    timeoutMs: 120_000,
    ...(user === undefined ? {} : { user }),
  });
  if (exitCode === 0) return stdout.slice(-prints.length);
  throw new Error(
    `exit code ${exitCode}: ${[stdout, stderr]
      .map((text) =>
        text
          .split("\n")
          .slice(-LAST_LINES * 3)
          .join("\n"),
      )
      .join("\n")}`,
  );
}

/** The connections that reached the tests' sites. */
async function arrived(): Promise<number> {
  return (await bed.world.report()).sightings.length;
}

describe("a program in a sandbox, without any proxy setting", { timeout: 180_000 }, () => {
  it.for(clientPrograms)(
    "can $name: a bundle allows it, the audit lists every connection, and the suggested rules are enough",
    async (program, context) => {
      if (program.needs !== undefined && !existsSync(program.needs)) context.skip(`${program.needs} is not installed`);
      await using sandbox = await create({ rules: [{ allow: program.bundle }] });
      const before = await arrived();
      expect(await run(sandbox, program)).toBe(program.prints);
      // Git over SSH reaches sshd, which is not one of the servers that count.
      const connections = (await arrived()) - before;
      const flows = (await bed.networkLog(sandbox.id)).filter(({ kind }) => kind === "flow");
      expect(new Set(flows.map(({ name }) => name))).toEqual(new Set(program.hosts));
      expect(flows.filter(({ decision }) => decision !== "allowed")).toEqual([]);
      const counted = flows.filter(({ port }) => port !== 22);
      expect(counted.length).toBe(connections);
      expect(flows.length).toBeGreaterThan(0);

      const { rules } = await bed.networkSuggestion(sandbox.id);
      const targets = rules.map((rule) => ("allow" in rule ? rule.allow : rule.deny));
      expect(targets.toSorted()).toEqual(program.suggests ?? program.hosts);
      await using again = await create({ rules });
      expect(await run(again, { ...program, script: program.script.replaceAll("-over-https", "-again") })).toBe(
        program.prints,
      );
    },
  );

  it("can use curl: HTTP/1.1, HTTP/2, redirects, events, and large bodies both ways", async () => {
    await using sandbox = await create({ rules: [{ allow: "site.example" }, { allow: "other.example", ports: [80] }] });
    const curl = async (args: string) => (await sandbox.exec(`curl -sS ${args}`, { timeoutMs: 60_000 })).stdout;
    expect(await curl("--http1.1 -w '%{http_version}' https://site.example/")).toMatch(/as site\.example\n1\.1$/);
    expect(await curl("--http2 -w '%{http_version}' https://site.example/")).toMatch(/as site\.example\n2$/);
    expect(await curl("-L 'http://site.example/redirect?to=http://other.example/'")).toContain(
      `reached ${addresses.other}`,
    );
    expect(await curl("-L -w '%{exitcode}' 'http://site.example/redirect?to=http://private.example/'")).not.toContain(
      "reached",
    );
    expect(await curl("-N https://site.example/events")).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
    const size = 8_000_000;
    expect(await curl(`-o /tmp/large -w '%{size_download}' 'https://site.example/download?bytes=${size}'`)).toBe(
      `${size}`,
    );
    const sum = (await sandbox.exec("sha256sum < /tmp/large")).stdout.split(" ")[0];
    expect(await curl("--data-binary @/tmp/large https://site.example/upload")).toBe(`${size} ${sum}\n`);
  });

  it("can use PostgreSQL", async () => {
    await using sandbox = await create({ rules: [{ allow: "db.site.example", ports: [5432] }] });
    const { stdout, stderr } = await sandbox.exec([
      "psql",
      "-h",
      "db.site.example",
      "-U",
      "postgres",
      "-Atc",
      "select 6 * 7",
    ]);
    expect({ stdout, stderr }).toEqual({ stdout: "42\n", stderr: "" });
  });
});

import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { run } from "../../../bench/run.ts";

/** The path of the tests' repository at github.com. */
const REPOSITORY = "birds/tern.git";

const identity = { GIT_AUTHOR_NAME: "t", GIT_AUTHOR_EMAIL: "t@site.example", GIT_CONFIG_GLOBAL: "/dev/null" };
const env = { ...process.env, ...identity, GIT_COMMITTER_NAME: "t", GIT_COMMITTER_EMAIL: "t@site.example" };

/** Creates a bare repository with one commit, which everybody may clone and push to. */
export async function createRepository(root: string): Promise<void> {
  const work = join(root, "work");
  await mkdir(work, { recursive: true });
  await run("git", ["init", "--quiet", "--initial-branch=main", work], { env });
  await writeFile(join(work, "README"), "a tern\n");
  await run("git", ["-C", work, "add", "README"], { env });
  await run("git", ["-C", work, "commit", "--quiet", "-m", "Add a tern"], { env });
  await run("git", ["clone", "--quiet", "--bare", work, join(root, REPOSITORY)], { env });
  await run("git", ["-C", join(root, REPOSITORY), "config", "http.receivepack", "true"], { env });
}

/** Runs Git's own CGI program for each request: the smart HTTP protocol. */
export function serveGit(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://github.com");
  const child = spawn("git", ["http-backend"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {
      ...env,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      // The repository belongs to another user than the one that Git expects.
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
    },
  });
  child.stdin.on("error", () => undefined);
  request.pipe(child.stdin);
  let head = Buffer.alloc(0);
  const onHead = (bytes: Buffer): void => {
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1) return;
    child.stdout.off("data", onHead);
    const fields = head
      .toString("latin1", 0, end)
      .split("\r\n")
      .map((line) => line.split(": ") as [string, string]);
    response.statusCode = Number(fields.find(([name]) => name === "Status")?.[1]?.split(" ")[0] ?? 200);
    for (const [name, value] of fields) if (name !== "Status") response.setHeader(name, value);
    response.write(head.subarray(end + 4));
    child.stdout.pipe(response);
  };
  child.stdout.on("data", onHead).on("end", () => response.end());
}

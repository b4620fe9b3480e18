import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"];

/** Serves a repository over HTTP, with one file on `main` ("second") and on tag `v1` ("first"). */
export interface GitServer extends AsyncDisposable {
  /** Public below /open, with a password below /private; never answers below /silent. */
  readonly address: string;
}

export async function startGitServer(
  host: string,
  credentials: { readonly user: string; readonly password: string },
): Promise<GitServer> {
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-git-"));
  const remove = () => rm(directory, { recursive: true, force: true });
  await makeRepository(directory).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const expected = `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString("base64")}`;
  const server = createServer(async (request, response) => {
    const [, area, ...rest] = normalize(new URL(request.url ?? "/", "http://git").pathname).split("/");
    if (area === "silent") return;
    if (area === "private" && request.headers.authorization !== expected) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
      return;
    }
    // Git can clone from the plain files of a repository.
    const content = await readFile(join(directory, ...rest)).catch(() => undefined);
    response.writeHead(content === undefined ? 404 : 200).end(content);
  });
  server.listen(0, host);
  await once(server, "listening");
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await remove();
    },
  };
}

async function makeRepository(directory: string): Promise<void> {
  const work = join(directory, "work");
  const git = (...args: readonly string[]) => run("git", [...identity, "-C", work, ...args]);
  await run("git", [...identity, "init", "--quiet", work]);
  for (const [content, tag] of [
    ["first", "v1"],
    ["second", "v2"],
  ] as const) {
    await writeFile(join(work, "file"), content);
    await git("add", "file");
    await git("commit", "--quiet", "--message", content);
    await git("tag", tag);
  }
  const bare = join(directory, "repository.git");
  await run("git", ["clone", "--quiet", "--bare", work, bare]);
  await run("git", ["-C", bare, "update-server-info"]);
}

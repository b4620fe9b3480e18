import { describe, expect, it } from "vitest";
import { dialArguments, engineArguments, importArguments, unregisterArguments } from "./wsl-arguments.ts";

describe("the arguments of wsl.exe", () => {
  it("import a distribution of version 2 from an archive, and unregister it by name", () => {
    const created = importArguments("1", "C:\\machines\\1", "C:\\engine.tar");
    expect(created).toEqual(["--import", "sandpiper-1", "C:\\machines\\1", "C:\\engine.tar", "--version", "2"]);
    expect(unregisterArguments("1")).toEqual(["--unregister", "sandpiper-1"]);
  });

  it("start an engine that listens only in the distribution, and one program for each connection", () => {
    const inside = ["--distribution", "sandpiper-1", "--user", "root", "--exec"];
    expect(engineArguments("1").slice(0, 8)).toEqual([...inside, "dockerd", "--host", "unix:///run/docker.sock"]);
    expect(dialArguments("1")).toEqual([...inside, "socat", "STDIO", "UNIX-CONNECT:/run/docker.sock"]);
  });
});

import { FakeClock } from "@sandpiper/core/testing";
import { SandboxError } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { CredentialWatch } from "./credential-watch.ts";
import type { Principal } from "./principal.ts";

function setUp() {
  const clock = new FakeClock();
  const valid = new Set(["a", "b"]);
  const authenticate = (credential: string | undefined): Principal => {
    if (credential !== undefined && valid.has(credential)) return {} as Principal;
    throw new SandboxError("bad_credential", { message: "not valid" });
  };
  const ended: string[] = [];
  const watch = new CredentialWatch({ authenticate }, clock);
  const follow = (credential: string) => watch.watch(credential, ({ reason }) => ended.push(`${credential} ${reason}`));
  return { clock, valid, ended, follow };
}

describe("a watched credential", () => {
  it("is reported once, within a second, when it becomes invalid", async () => {
    const { clock, valid, ended, follow } = setUp();
    follow("a");
    follow("b");
    await clock.advance(5000);
    expect(ended).toEqual([]);
    valid.delete("a");
    await clock.advance(1000);
    expect(ended).toEqual(["a bad_credential"]);
    await clock.advance(5000);
    expect(ended).toHaveLength(1);
  });

  it("is not reported after its watch was disposed", async () => {
    const { clock, valid, ended, follow } = setUp();
    const first = follow("a");
    first[Symbol.dispose]();
    valid.clear();
    await clock.advance(2000);
    expect(ended).toEqual([]);
    follow("b");
    await clock.advance(1000);
    expect(ended).toEqual(["b bad_credential"]);
  });
});

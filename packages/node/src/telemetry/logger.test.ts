import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { type CreateLoggerOptions, createLogger } from "./logger.ts";

function logged(options: Partial<CreateLoggerOptions>, use: (logger: ReturnType<typeof createLogger>) => void) {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  use(createLogger({ logLevel: "info", logFormat: "auto", isTerminal: false, write, ...options }));
  return lines;
}

const key = `spk_0011aabb_${"A".repeat(43)}`;
const token = `spt_0190b5c4-7e1a-7c2e-8a3b-000000000000_${"b-_".repeat(14)}`;

describe("the log", () => {
  it("is JSON with the level's name and an ISO time without a terminal", () => {
    const [line = ""] = logged({}, (logger) => logger.info({ port: 1 }, "hello"));
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(JSON.parse(line)).toEqual({ level: "info", time, port: 1, msg: "hello" });
  });

  it("is human-readable on a terminal, unless JSON is configured", () => {
    expect(logged({ isTerminal: true }, (logger) => logger.info("hello"))[0]).toContain("INFO");
    expect(logged({ isTerminal: true, logFormat: "json" }, (logger) => logger.info("hello"))[0]).toMatch(/^\{/);
    expect(logged({ logFormat: "pretty" }, (logger) => logger.info({ a: 1 }, "hello"))[0]).toContain('hello {"a":1}');
  });

  it("omits lines below its level", () => {
    const lines = logged({ logLevel: "warn" }, (logger) => {
      logger.info("no");
      logger.warn("yes");
    });
    expect(lines).toHaveLength(1);
  });

  it("contains an error's code, reason and message", () => {
    const err = SandboxError.fromFields({ code: "not_found", reason: "no_such_thing", message: "there is none" });
    const [line = ""] = logged({}, (logger) => logger.error({ err }, "failed"));
    expect(JSON.parse(line).err).toMatchObject({
      code: "not_found",
      reason: "no_such_thing",
      message: "there is none",
    });
  });

  it.each(["json", "pretty"] as const)("never shows a credential (%s)", (logFormat) => {
    const text = logged({ logFormat }, (logger) => {
      logger.info({ headers: { Authorization: `Bearer ${key}`, cookie: "c=topsecret" } }, "in a header");
      logger.info({ body: { token: "topsecret", secret: "topsecret", list: [{ key: "topsecret" }] } }, "in a body");
      logger.info({ config: { clusterSecret: "topsecret", s3: { secretAccessKey: "topsecret" } } }, "in a setting");
      logger.info({ body: { env: { PASSWORD: "topsecret" } } }, "in an environment");
      logger.info(`in a message ${key} ${token} whs_${"A".repeat(43)}`);
      logger.info({ url: `/v1/socket?access=${token}` }, "in a URL");
      logger.error({ err: new Error(`in an error ${key}`) }, "in an error");
      logger.child({ actor: key }).info("in a binding");
    }).join("");
    expect(text).not.toContain("topsecret");
    expect(text).not.toContain("A".repeat(43));
    expect(text).not.toContain("b-_b-_");
    expect(text).toContain("spk_0011aabb_[hidden]");
    expect(text).toContain("PASSWORD");
  });
});

import { describe, expect, it } from "vitest";
import { DirectoryStore } from "./directory-store.ts";
import { GcsStore } from "./gcs-store.ts";
import { openStore } from "./open-store.ts";
import { S3Store } from "./s3-store.ts";

describe("a store URL", () => {
  it("opens a directory", () => {
    const store = openStore("file:///srv/sand%20piper/");
    expect(store).toBeInstanceOf(DirectoryStore);
    expect(store.label).toBe("file:///srv/sand%20piper");
  });

  it.each([
    ["s3://bucket", "s3://bucket"],
    ["s3://bucket/", "s3://bucket"],
    ["s3://my.bucket-1/a/b/", "s3://my.bucket-1/a/b"],
    ["gs://bucket", "gs://bucket"],
    ["gs://my_bucket.example.com/a/b/", "gs://my_bucket.example.com/a/b"],
  ])("opens a bucket: %s", (url, label) => {
    const store = openStore(url);
    expect(store).toBeInstanceOf(url.startsWith("s3:") ? S3Store : GcsStore);
    expect(store.label).toBe(label);
  });

  it.each([
    "",
    "/srv/sandpiper",
    "file://srv/sandpiper",
    "file:relative",
    "file:///a%2fb",
    "file:///a?b",
    "s3://",
    "s3:///prefix",
    "s3://Bad_Bucket/x",
    "s3://bucket/a//b",
    "s3://bucket/a/%2e%2e%2fb",
    "s3://bucket:80/x",
    "s3://bucket/x#y",
    "gs://",
    "gs://bucket/a//b",
    "gs://bucket:80/x",
    "http://bucket/x",
  ])("is refused with a hint if it is invalid: %j", (url) => {
    expect(() => openStore(url)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        reason: "bad_store_url",
        hint: expect.stringContaining("file:///"),
      }),
    );
  });

  it("is shown in an error without its password", () => {
    expect(() => openStore("s3://key:secret@bucket/x")).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("secret") }),
    );
  });
});

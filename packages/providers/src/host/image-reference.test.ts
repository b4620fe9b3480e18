import { describe, expect, it } from "vitest";
import { parseImageReference } from "./image-reference.ts";

describe("an image's reference", () => {
  it.each([
    ["python", "docker.io", "python", "latest"],
    ["python:3.13-slim", "docker.io", "python", "3.13-slim"],
    ["team/app", "docker.io", "team/app", "latest"],
    ["localhost/app:1", "localhost", "localhost/app", "1"],
    ["registry.example/team/app", "registry.example", "registry.example/team/app", "latest"],
    ["127.0.0.1:5000/app", "127.0.0.1:5000", "127.0.0.1:5000/app", "latest"],
    ["127.0.0.1:5000/app:2", "127.0.0.1:5000", "127.0.0.1:5000/app", "2"],
    ["app@sha256:abc", "docker.io", "app", "sha256:abc"],
    ["registry.example/app:1@sha256:abc", "registry.example", "registry.example/app", "sha256:abc"],
  ])("is split into registry, name and tag: %s", (reference, registry, name, tag) => {
    expect(parseImageReference(reference)).toEqual({ registry, name, tag });
  });
});

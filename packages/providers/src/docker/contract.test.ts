import { afterAll, beforeAll } from "vitest";
import { describeContract } from "./testing/describe-contract.ts";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

describeContract("docker", () => fixture);

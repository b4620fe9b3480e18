import { shared } from "../host/testing/shared.ts";
import { describeContract } from "./testing/describe-contract.ts";
import { createDockerFixture } from "./testing/fixture.ts";

const fixture = await shared(createDockerFixture());

describeContract("docker", fixture);

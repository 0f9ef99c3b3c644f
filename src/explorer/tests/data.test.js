import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { unpack, WEIGHT } from "../data.js";

test("what explorer.py packs comes out as it went in", async () => {
  const codes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
  assert.deepEqual(await unpack(deflateSync(codes, { level: 9 }).toString("base64")), codes);
});

test("a byte is the square root of its weight", () => {
  assert.equal(WEIGHT[0], 0);
  assert.equal(WEIGHT[255], 1);
  assert.ok(Math.abs(WEIGHT[51] - 0.04) < 1e-7);
});

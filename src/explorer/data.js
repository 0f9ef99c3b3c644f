/**
 * What the page brings along (explorer.py writes it), and how its weights are unpacked.
 *
 * @typedef {[layer: number, head: number]} Head Counted from 1.
 *
 * @typedef {object} Example
 * @property {string} title
 * @property {string} note
 * @property {string[]} tokens Wordpieces, special tokens included.
 * @property {string[]} labels Words.
 * @property {number[]} words Each wordpiece's word, -1 for special tokens.
 * @property {number[]} parts Each wordpiece's text: 0 or, in a pair, 1.
 * @property {Head} start The head to open first.
 * @property {[from: number, to: number, label: string][]} marks Words that are expected to look at others.
 * @property {string} weights Packed; see {@link unpack}.
 *
 * @typedef {object} Data
 * @property {string} model
 * @property {number} layers
 * @property {number} heads A layer.
 * @property {2 | 3 | 4} heading Level of the explorer's headings.
 * @property {string} rounding What a reader is told of it.
 * @property {Example[]} examples
 */

/** The weight that each byte stands for: its square root was kept. */
export const WEIGHT = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);

/**
 * Codes of one example's weights, a byte each [layer, head, query, key].
 * @param {string} packed Base64 of a zlib stream.
 */
export async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

import { type Answer, errorAnswer } from '../../domain/instruction/model.js';
import { errorText, MAX_REPLY_B64 } from '../../domain/instruction/text.js';
import type { StoredReply } from '../../ports/instruction/journal.js';

/** As it goes over the wire, within the limit of a message: what is larger becomes an error that names the size (engine.md A15). */
export function encodeAnswer(answer: Answer): StoredReply {
  switch (answer.kind) {
    case 'none':
      return 'none';
    case 'error':
      return { type: 'ERROR', jsonB64: errorText(answer.text) };
    case 'json': {
      const jsonB64 = Buffer.from(JSON.stringify(answer.value)).toString('base64');
      if (jsonB64.length <= MAX_REPLY_B64) return { type: answer.type, jsonB64 };
      const size = `${answer.type} has ${jsonB64.length} bytes, ${MAX_REPLY_B64} can be sent`;
      return encodeAnswer(errorAnswer(`RESULT_TOO_LARGE: the instruction was carried out, but its reply of type ${size}`));
    }
  }
}

/** Roughly what it takes in a message and in the journal. */
export function replyBytes(reply: StoredReply): number {
  return reply === 'none' ? 0 : reply.type.length + reply.jsonB64.length;
}

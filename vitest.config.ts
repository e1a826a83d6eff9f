import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          testTimeout: 20_000,
          include: ['domain', 'app', 'composition', 'house'].map((folder) => `test/${folder}/**/*.test.ts`),
        },
      },
      { test: { name: 'adapters', include: ['test/adapters/**/*.test.ts'], testTimeout: 30_000 } },
      {
        test: {
          name: 'kubernetes',
          include: ['test/kubernetes/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      // Of a command of its own: `npm run test:peer-go`.
      { test: { name: 'peer-go', include: ['test/peer-go/**/*.test.ts'] } },
    ],
  },
});

export const OUTDATED_LIMITS = {
  list: 0.02,
  evaluation: 0.02,
  transcript: 0.02,
  scorecard: 0.02,
  rubric: 0.02,
  dealInsights: 0.02,
  notFound: 0.02,
};

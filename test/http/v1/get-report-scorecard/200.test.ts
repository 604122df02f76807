import { GET_REPORT_SCORECARD } from '../../common/endpoints.ts';
import { describeScoredCards } from '../../common/scored-card-suite.ts';

describeScoredCards(GET_REPORT_SCORECARD);

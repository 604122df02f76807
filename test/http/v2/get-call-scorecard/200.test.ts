import { GET_CALL_SCORECARD } from '../../common/endpoints.ts';
import { describeScoredCards } from '../../common/scored-card-suite.ts';

describeScoredCards(GET_CALL_SCORECARD);

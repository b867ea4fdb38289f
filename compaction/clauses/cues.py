"""Words that make a sentence a clause, in six languages. Latin cues are written small; `_` is a blank."""

import re

from threadmark.compaction.clauses.clause import ClauseClass
from threadmark.compaction.clauses.phrases import CJK_PHRASES, PHRASES
from threadmark.compaction.keyword_prefilter import word_lead, words

__all__ = ["CJK_CUE", "CJK_CUES", "CUE", "CUES"]

_LATIN: dict[ClauseClass, str] = {
    ClauseClass.CONSTRAINT: """
        nobody remember_that it_is_important it's_important untouched unchanged
        must mustn't never always don't do_not shall shall_not should_not shouldn't may_not
        not_allowed no_more_than at_most at_least required requirement forbidden prohibited under_no_circumstances
        without_my not_exceed limit_is make_sure ensure have_to has_to needs_to need_to avoid no_later_than not_before
        stick_to mandatory strictly only_use use_only only_if only_when only_after only_in only_on only_via only_with
        only_from only_by only_the prefer preferably cannot_be can't_be can't_exceed hard_limit not_acceptable unless
        is_off_limits off_limits do_n't not_to_be keep_it_under budget_is deadline_is
        requires require_approval maximum minimum limit_of limited_to capped_at stay_below stay_under
        stay_within you_can't
        you_can't you_cannot we_can't we_cannot nobody_may no_one_may may_only allergic not_later_than
        must_be
        niemand wichtig unverändert
        muss müssen musst müsst darf dürfen darfst niemals nie immer nur höchstens mindestens maximal auf_keinen_fall
        verboten nicht_erlaubt untersagt pflicht soll_nicht sollen_nicht spätestens bitte_nicht bitte_keine bitte_kein
        bitte_keinen keinesfalls ausschließlich zwingend vermeide vermeiden unbedingt bevorzuge
        limit frist obergrenze untergrenze maximum begrenzt_auf allergisch nicht_mehr_als nicht_vor erst_nach
        bis_spätestens
        seul seule important intact n'oubliez_pas il_ne_faut
        doit doivent devez dois devons il_faut jamais toujours interdit interdite défense_de obligatoire au_maximum
        au_plus au_moins uniquement seulement ne_pas sans_mon évitez éviter exclusivement au_plus_tard impérativement
        date_limite limite plafond maximum minimum limité_à réservé_à allergique pas_plus_de pas_avant
        veillez_à
        importante intacto intacta deja_la deja_el
        debe deben debes debemos hay_que tiene_que tienen_que tienes_que nunca jamás siempre prohibido prohibida
        obligatorio como_máximo como_mínimo al_menos solo sólo únicamente solamente no_se_puede no_puede
        no_pueden evita
        evite evitar a_más_tardar sin_mi exclusivamente asegúrate asegúrese
        límite fecha_límite máximo mínimo nada_de limitado_a alérgico alérgica no_más_de
    """,
    ClauseClass.DECISION: """
        final_answer
        we_decided decided decision: decision_is we_will_go_with we'll_go_with let's_go_with agreed_to
        we_agreed agreed: we_have_chosen we've_chosen we_chose settled_on approved the_plan_is_to going_with
        we_will_use
        we'll_use let's_use signed_off we_are_using we_picked final_decision it_is_settled
        let's_do let's_keep let's_move let's_take let's_make let's_switch let's_stick let's_start let's_pick
        go_with chose
        has_chosen opted_for we_are_going_to we're_going_to we_choose i_choose we_are_switching
        wir_machen
        beschlossen entschieden entscheidung: einigten_uns geeinigt wir_nehmen festgelegt wir_bleiben_bei vereinbart
        wir_verwenden wir_nutzen genehmigt
        entscheiden_uns entscheide_mich wir_wählen gewählt machen_wir
        finalement
        décidé décidée décision: décision_: convenu nous_retenons on_part_sur avons_choisi on_garde validé
        nous_utilisons nous_utiliserons on_utilise
        on_choisit nous_choisissons on_prend nous_prenons on_opte je_choisis nous_optons
        al_final
        decidido decidimos decisión: acordamos acordado hemos_elegido nos_quedamos_con vamos_a_usar aprobó aprobado
        elegimos usaremos usamos
        se_decidió decidió optamos_por escogemos escogimos
    """,
    ClauseClass.COMMITMENT: """
        you'll_have you_will_have i_can_have count_on_me
        i_will i'll we_will we'll i_promise we_promise i_am_going_to i'm_going_to will_send
        will_deliver will_call will_get_back committed_to i_commit we_commit promised guarantee commit_to
        i_won't will_be_ready will_provide
        will_follow_up
        bekommst_du bekommen_sie du_bekommst sie_bekommen
        ich_werde wir_werden verspreche versprechen zugesagt ich_schicke ich_sende ich_liefere ich_kümmere_mich
        ich_melde_mich wir_liefern wir_schicken wir_senden ich_rufe ich_übernehme wir_übernehmen ich_bringe
        wird_liefern
        vous_aurez tu_auras
        je_vais nous_allons je_m'engage nous_nous_engageons je_promets je_m'occupe on_va
        tendrás tendrá tendrán
        voy_a vamos_a me_comprometo nos_comprometemos prometo prometemos me_encargo nos_encargamos
    """,
    ClauseClass.OPEN_QUESTION: """
        open_question still_open still_unclear to_be_decided tbd not_yet_decided to_be_confirmed
        offene_frage noch_offen noch_unklar zu_klären
        question_ouverte reste_à_décider reste_à_savoir à_confirmer
        pregunta_abierta falta_decidir queda_por_decidir por_confirmar
    """,
    ClauseClass.CORRECTION: """
        my_mistake my_bad
        correction: correction, actually, i_meant no,_use no,_it's no,_the scratch_that i_was_wrong
        should_have_been typo: wait, make_that i_misspoke that's_wrong that_is_wrong not_correct
        incorrect
        change_that_to change_it_to that's_not_right instead_of sorry,_i sorry,_the sorry,_it not_the_old
        moment, statt
        korrektur korrektur: nein, ich_meinte doch_nicht sondern stattdessen berichtigung anstatt stimmt_nicht
        gemeint_war vielmehr
        attendez, et_non
        non, en_fait je_voulais_dire plutôt au_lieu_de rectification pardon,
        c'est_faux erreur_de_ma_part
        y_no
        corrección corrección: en_realidad quise_decir mejor_dicho en_lugar_de en_vez_de perdón, sino
        está_mal no_es_correcto es_incorrecto
    """,
}
CUES: dict[str, ClauseClass] = {
    cue.replace("_", " "): cls for tables in (PHRASES, _LATIN) for cls, table in tables.items() for cue in words(table)
}
CUE = re.compile(word_lead(CUES) + r"(?![a-z0-9_ß-ɏ])")

_CJK: dict[ClauseClass, str] = {
    ClauseClass.CONSTRAINT: """
        必须 不得 不要 不能 不可以 不允许 禁止 严禁 只能 只用 仅限 务必 一定要 最多 至少 不超过 不许 切勿 请勿 绝不
        决不 永远 总是 始终 上限 下限 期限 限额 截止 不可 尽量 过敏
        只有 保持不变 重要
        必ず 厳禁 てはいけ てはなら ではいけ ではなら ないでください しないで のみ 絶対に
        なければなら べきで 許可なし 許可なく 必須 決して 少なくとも 常に 以内に 超えない
        締め切り 締切 アレルギー ご遠慮 だけにして だけが しないこと 重要
    """,
    ClauseClass.DECISION: """
        决定 选定 敲定 定下来 商定 达成一致 拍板 最终方案 选了 选择了 最后我们 就按 定为 就用 我们采用 我们选择
        同意了
        已经批准
        決定 決めまし 決めた ことにします ことにしまし ことにした 採用します 合意しまし
        決まりまし 決まった 承認しまし
        案にします にしましょう で進めます を選びまし を選びます
    """,
    ClauseClass.COMMITMENT: """
        我会 我将 我们会 我们将 保证 承诺 我来负责 由我负责 我负责
        お送りします 送ります 送付します 提出します 連絡します 対応します いたします 約束
        お届けします 納品します 返信します 用意します 報告します
    """,
    ClauseClass.OPEN_QUESTION: "未决 待定 待确认 尚未确定 还没决定 未定 要確認 未確認 未解決",
    ClauseClass.CORRECTION: """
        更正 不对 我的意思是 应该是 改成 改为 而不是 说错 纠正 而是
        訂正 間違え の間違い ではなく いや、 違います 正しくは 言い間違
    """,
}
CJK_CUES: dict[str, ClauseClass] = {
    cue: cls for tables in (CJK_PHRASES, _CJK) for cls, table in tables.items() for cue in words(table)
}
CJK_CUE = re.compile(word_lead(CJK_CUES))

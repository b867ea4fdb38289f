"""What people say instead of the plain cue: turns of phrase, by class. `_` is a blank, `'` any apostrophe."""

from threadmark.compaction.clauses.clause import ClauseClass

__all__ = ["CJK_PHRASES", "PHRASES"]

PHRASES: dict[ClauseClass, str] = {
    ClauseClass.CONSTRAINT: """
        hands_off off-limits keep_away_from in_person keep_out_of stay_out_of stays_out_of stay_away_from steer_clear
        between_us stays_between to_yourself to_yourselves confidential top_secret in_confidence not_a_word
        without_exception no_exceptions with_no_exception at_all_costs at_any_cost whatever_happens no_matter_what
        is_not_to are_not_to are_to_be is_to_be not_permitted isn't_permitted aren't_permitted isn't_allowed
        aren't_allowed barred_from are_barred banned not_supposed_to not_meant_to aren't_to isn't_to is_needed_before
        are_needed_before needed_before_any needed_before_we needed_before_you signatures_are sign-off_from
        approval_from approval_of permission_of permission_from consent_of without_asking without_approval
        without_permission without_consent ask_me_first ask_first check_with_me check_with_us run_it_past run_it_by
        run_everything_past run_everything_by past_me_first by_me_first through_me_first leave_out leave_it_out
        leave_them_out leave_him_out leave_her_out cannot_eat can't_eat cannot_have can't_have cannot_tolerate
        intolerant intolerance vegetarian vegan coeliac celiac diabetic gluten-free lactose nut-free kosher halal
        provided_that under_the_condition on_condition_that on_the_condition no_later no_sooner no_earlier_than
        at_the_latest at_the_earliest not_until until_further_notice by_all_means refrain_from beware_of
        be_careful_not be_sure_to see_to_it remember_to don't_forget do_not_forget is_essential are_essential
        is_crucial is_vital is_imperative is_compulsory are_compulsory is_obligatory are_obligatory is_taboo no_go
        no-go no-gos insist_on i_insist we_insist is_out_of_the_question has_no_business have_no_business nobody_but
        no_one_but nobody_else no_one_else i_don't_want we_don't_want i_do_not_want we_do_not_want i_want_you_to
        i_need_you_to not_more_than not_less_than no_fewer_than no_less_than up_to_a_maximum cap_of cap_is ceiling_of
        ceiling_is the_rule_is our_policy the_policy_is company_policy by_law under_the_contract finger_weg
        persönlich_an nimmt_nur hände_weg unter_uns bleibt_unter vertraulich geheim geheim_halten kein_wort
        kein_sterbenswort ohne_ausnahme ausnahmslos um_jeden_preis koste_es was_auch_geschieht egal_was
        nicht_gestattet nicht_zulässig unzulässig nicht_vorgesehen nicht_befugt tabu ist_zu_unterlassen
        hat_zu_unterbleiben braucht_es bedarf_es bedarf_der erforderlich notwendig vorgeschrieben verpflichtend
        verbindlich setzt_voraus voraussetzung unter_der_bedingung vorausgesetzt solange_nicht sofern_nicht
        es_sei_denn außer_wenn ohne_rücksprache ohne_zustimmung ohne_genehmigung ohne_freigabe nach_rücksprache
        mit_zustimmung läuft_über geht_über_meinen läuft_zuerst geht_zuerst zuerst_über zuerst_an weglassen lasst_sie
        lass_sie lass_das verträgt_keine verträgt_kein vertrage_keine vertrage_kein unverträglichkeit vegetarisch
        vegetarier vegetarierin veganer veganerin diabetiker diabetikerin laktose glutenfrei zöliakie
        am_besten_gar_nicht nicht_vergessen vergesst_nicht vergiss_nicht denk_daran denkt_daran achte_darauf
        achtet_darauf achten_sie_darauf sorge_dafür sorgt_dafür sorgen_sie_dafür hüten_sie unterlassen unterlasse
        nicht_später_als nicht_länger_als nicht_weniger_als frühestens bis_auf_weiteres kommt_nicht_in_frage
        kommt_nicht_infrage geht_niemanden niemanden_etwas ist_nicht_drin besteht_auf bestehe_auf bestehen_auf
        wir_wollen_kein ich_will_kein ich_möchte_kein ich_möchte_nicht wir_wollen_nicht laut_vertrag laut_gesetz
        pas_un_mot motus en_main_propre bas_les_pattes pas_touche entre_nous reste_secret confidentiel confidentielle
        confidentiels sans_exception à_tout_prix coûte_que_coûte quoi_qu'il_arrive n'est_pas_permis n'est_pas_autorisé
        n'est_pas_autorisée pas_autorisé pas_autorisés pas_le_droit pas_question hors_de_question nous_interdit
        m'interdit vous_interdit interdits interdites proscrit proscrite sont_nécessaires est_nécessaire est_requis
        est_requise sont_requis sont_requises est_exigé est_exigée exigé exigée obligatoires indispensable
        indispensables à_condition sous_réserve sauf_si sans_l'accord sans_accord sans_autorisation
        sans_l'autorisation avec_l'accord passe_d'abord passent_d'abord d'abord_par laissez-les laissez-le laisse-le
        laisse-les ne_supporte_pas ne_mange_pas ne_tolère_pas ne_digère_pas intolérant intolérante intolérance
        végétarien végétarienne végétariens végétalien végane diabétique cœliaque sans_gluten sans_lactose
        n'oublie_pas veille_à assurez-vous assure-toi faites_en_sorte fais_en_sorte au_plus_tôt pas_moins_de
        jusqu'à_nouvel_ordre personne_d'autre nul_ne est_à_proscrire exige exigent exigeons tenons_à_ce tiens_à_ce
        je_ne_veux_pas nous_ne_voulons_pas selon_le_contrat ni_una_palabra en_persona manos_fuera entre_nosotros
        queda_entre confidencial confidenciales en_secreto sin_excepción sin_excepciones a_toda_costa
        cueste_lo_que_cueste pase_lo_que_pase no_está_permitido no_está_permitida no_se_permite no_se_debe
        no_se_admite no_se_admiten no_autorizado no_autorizada nos_impide me_impide nos_prohíbe prohíbe prohíben
        prohibidos prohibidas vetado vetada hacen_falta hace_falta se_necesitan se_necesita se_requiere se_requieren
        es_necesario son_necesarias son_necesarios es_imprescindible imprescindible obligatoria obligatorios
        a_condición_de con_la_condición salvo_que a_menos_que a_no_ser_que sin_permiso sin_autorización sin_consultar
        sin_el_visto con_el_visto pasa_primero pasan_primero primero_por dejadlas dejadlo déjalas déjalo déjenlas
        no_tolera no_come_carne intolerante intolerancia vegetariano vegetariana vegano vegana diabético diabética
        celíaco celíaca celiaca celiaco sin_gluten sin_lactosa no_olvides no_olvide no_olvidéis acuérdate recuerda_que
        procura procure cuida_de ni_se_te_ocurra ni_se_les_ocurra de_ninguna_manera de_ningún_modo
        bajo_ningún_concepto en_ningún_caso no_antes no_menos_de hasta_nuevo_aviso nadie_más nadie_debe nadie_puede
        no_quiero_que no_queremos_que exijo exigimos según_el_contrato por_contrato
    """,
    ClauseClass.DECISION: """
        it_is_then it_is,_then it_shall_be it'll_be_the after_all we_are_keeping we're_keeping we_are_dropping
        we_are_moving we're_moving we're_switching we_are_staying we're_staying we_are_replacing we're_replacing
        we_are_cancelling we're_cancelling we_are_postponing we're_postponing we_are_closing we're_closing
        we_are_hiring we're_hiring we_picked they_picked board_picked we_went_for we_landed_on settled_for plumped_for
        decided_on decided_against made_up_my_mind made_up_our_minds our_choice_is my_choice_is choice_fell voted_for
        voted_to voted_against unanimous unanimously carried_unanimously the_vote_was consensus_is we're_sticking
        we_are_sticking it's_decided it's_settled that's_settled that_settles case_closed done_deal green_light
        go-ahead gave_the_nod signed_off_on we_take_the we'll_take_the i'll_take_the let's_have_the let's_leave_it
        let's_call_it we're_dropping we_dropped we_ruled_out ruled_out we_rejected was_rejected got_the_contract
        won_the_contract got_the_job gets_the_contract resolved_to resolution: verdict: the_winner_is tuesday_it_is
        monday_it_is wednesday_it_is thursday_it_is friday_it_is saturday_it_is sunday_it_is behalten_wir
        streichen_wir verschieben_wir verlegen_wir ersetzen_wir wechseln_wir bleiben_wir wir_behalten wir_streichen
        wir_verschieben wir_verlegen wir_ersetzen wir_wechseln wir_bleiben dann_bleibt_es bleibt_es_beim bleibt_es_bei
        es_bleibt_beim es_bleibt_bei machen_es_so so_machen_wir fiel_die_wahl die_wahl_fiel wahl_fällt fiel_auf_das
        haben_wir_uns_für wir_haben_uns_für einstimmig mehrheitlich abgestimmt angenommen: abgelehnt verworfen
        zugestimmt zuschlag grünes_licht abgesegnet steht_fest: ist_beschlossene beschlossene_sache abgemacht
        ausgemacht ausgesucht ausgewählt durchgerungen dabei_bleibt_es dann_nehmen_wir nehmen_wir_das tout_compte_fait
        nous_gardons nous_supprimons nous_reportons nous_déplaçons nous_remplaçons nous_restons on_reporte on_supprime
        on_remplace va_pour d'accord_pour avons_retenu ont_retenu est_retenu est_retenue retenu_l'offre retenons
        avons_pris notre_choix mon_choix s'est_porté s'est_portée à_l'unanimité unanimité à_la_majorité adopté:
        adoptée adopté_à voté_pour voté_contre a_voté tranché c'est_décidé c'est_entendu affaire_conclue marché_conclu
        feu_vert donné_son_accord opté_pour nous_avons_opté jeté_notre_dévolu on_reste_sur restons_sur
        on_fait_comme_ça faisons_comme_ça on_abandonne nous_abandonnons a_été_rejeté a_été_rejetée a_été_écarté
        a_été_écartée écarté_l' abandonné_l'idée accordé_le_marché mantenemos suprimimos aplazamos trasladamos
        sustituimos cancelamos seguimos_con nos_quedamos quedamos_en se_decantó se_decantaron nos_decantamos
        se_inclinó_por nos_inclinamos la_elección recayó_en por_unanimidad por_mayoría aprobada aprobado_por votamos
        votó_a_favor está_decidido está_acordado hecho_está trato_hecho luz_verde dio_el_visto eligió eligieron eligen
        hemos_optado optó_por optaron_por optamos nos_vamos_con se_rechazó rechazamos descartamos descartado
        descartada adjudicado adjudicada pues_el_lunes pues_el_martes pues_el_miércoles pues_el_jueves pues_el_viernes
        entonces_el_lunes entonces_el_martes entonces_el_miércoles entonces_el_jueves entonces_el_viernes
    """,
    ClauseClass.COMMITMENT: """
        i_can_drop i_can_bring i_can_send i_can_pick i_can_call i_can_deliver i_can_finish i_can_prepare
        consider_it_done leave_it_to_me leave_that_to_me leave_this_to_me leave_it_with_me leave_that_with_me
        i'm_on_it we're_on_it i've_got_this i_got_this i'll_see_to it's_on_me on_my_list on_my_to-do my_word
        you_have_my_word take_care_of_it i_take_care we_take_care take_it_from_here i_shall we_shall i'm_going_to_send
        will_be_there will_be_with_you will_be_done will_get_it will_reach_you you'll_get you_will_get you'll_hear
        you_will_hear you'll_receive you_will_receive expect_it_by expect_it_on in_the_post_tonight
        in_the_post_tomorrow i_owe_you rest_assured i_volunteer we_undertake_to i_undertake pledge i_swear
        i_aim_to_have we_aim_to_have i_intend_to we_intend_to will_look_after i_can_do_that_by i_can_have_it
        versprochen großes_ehrenwort ehrenwort hand_drauf verlass_dich verlassen_sie_sich wird_erledigt wird_gemacht
        mache_ich_noch mach_ich erledige_ich übernehme_ich kümmere_ich melde_ich rufe_ich schicke_ich sende_ich
        bringe_ich liefere_ich schreibe_ich prüfe_ich reiche_ich kümmert_sich_darum kümmert_sich_um kümmert_sich_diese
        kümmern_uns kümmert_sich_mein kümmert_sich_unser wir_kümmern wir_übernehmen übernehmen_wir
        überlassen_sie_das_mir überlass_das_mir lass_das_meine lassen_sie_das_meine sie_hören_von du_hörst_von
        erhalten_sie_bis erhältst_du bis_morgen_haben_sie garantiere garantieren sichere_ihnen sichere_dir zusichern
        verpflichte_mich verpflichten_uns ich_habe_vor wir_haben_vor wollen_wir_bis promis je_reviens_vers
        nous_revenons_vers comme_si_c'était_fait laissez-moi_faire laisse-moi_faire comptez_sur_moi compte_sur_moi
        me_charge_de nous_chargeons_de m'en_occupe m'en_charge nous_en_occupons nous_nous_occupons c'est_pour_moi
        je_prends_en_charge prenons_en_charge vous_recevrez tu_recevras parole_d'honneur je_vous_assure je_garantis
        nous_garantissons je_jure je_compte_vous on_s'occupe on_s'en_occupe nous_prévoyons_de prometido
        palabra_de_honor te_doy_mi_palabra dalo_por_hecho delo_por_hecho dadlo_por_hecho déjamelo déjemelo
        déjalo_en_mis cuenta_conmigo cuente_conmigo me_encargo_yo encargo_yo me_ocupo nos_ocupamos lo_hago_yo
        corre_de_mi_cuenta corre_por_mi te_digo_algo le_digo_algo te_aviso le_aviso os_aviso te_llamo le_llamo
        te_mando te_envío le_envío te_paso recibirás recibirá recibirán garantizo garantizamos aseguro_que juro_que
        tengo_previsto tenemos_previsto pienso_enviar
    """,
    ClauseClass.OPEN_QUESTION: """
        anybody's_guess anyone's_guess nobody_knows no_one_knows nobody_can_say no_one_can_say who_knows no_idea_who
        no_idea_what no_idea_how no_idea_when no_idea_where no_idea_whether no_idea_if no_idea_which no_idea_why
        no_clue not_sure_who not_sure_what not_sure_how not_sure_when not_sure_whether not_sure_if not_sure_which
        not_sure_yet i_wonder we_wonder wondering_whether wondering_if wondering_who wondering_what remains_to_be_seen
        yet_to_be yet_to_decide yet_to_agree yet_to_hear have_yet_to has_yet_to up_in_the_air unclear undecided
        unresolved unsettled open_point open_points open_issue open_issues not_yet_clear not_clear_yet not_yet_known
        not_known_yet not_yet_fixed not_fixed_yet not_yet_agreed not_agreed_yet don't_know_yet do_not_know_yet
        don't_know_who don't_know_what don't_know_when don't_know_whether don't_know_if don't_know_how
        don't_know_which still_don't_know still_do_not_know still_waiting_for still_waiting_on waiting_to_hear
        haven't_decided have_not_decided hasn't_decided has_not_decided haven't_heard have_not_heard told_us_yet
        told_me_yet said_yet told_anyone_yet to_be_clarified to_be_discussed to_be_determined to_be_agreed tbc tba
        question_is_whether question_remains question_mark let_me_know_whether let_me_know_if let_me_know_which
        let_me_know_when let_me_know_who depends_on_whether in_limbo still_debating still_discussing
        still_thinking_about weiß_keiner weiß_niemand niemand_weiß keiner_weiß kann_keiner_sagen kann_niemand_sagen
        keine_ahnung weiß_nicht_ob weiß_noch_nicht wissen_noch_nicht wissen_wir_noch wissen_wir_nicht ist_noch_nicht
        steht_noch_nicht steht_noch_aus stehen_noch_aus noch_nicht_fest noch_nicht_klar noch_nicht_geklärt
        noch_nicht_entschieden noch_nicht_bekannt nicht_geklärt ungeklärt unklar ungewiss offen_ist bleibt_offen
        bleibt_abzuwarten noch_abzuwarten steht_in_den_sternen in_der_schwebe hängt_in_der_luft frage_mich fragen_uns
        fragt_sich fraglich zu_klären_ist klärungsbedarf muss_noch_geklärt noch_zu_klären noch_zu_entscheiden
        noch_keine_antwort noch_keine_rückmeldung noch_keine_entscheidung warten_noch_auf warte_noch_auf
        bin_nicht_sicher bin_mir_nicht_sicher sind_uns_nicht_sicher noch_hat_uns hat_uns_noch gesagt,_ob gesagt,_wann
        gesagt,_welche gesagt,_welchen gesagt,_wer sag_mir_bescheid,_ob noch_niemand hängt_davon_ab,_ob offene_punkte
        offener_punkt personne_ne_sait personne_ne_peut_dire nul_ne_sait qui_sait aucune_idée on_ne_sait_pas
        ne_sait_pas_encore ne_savons_pas ne_sais_pas_encore je_ne_sais_pas_si je_ne_sais_pas_qui je_ne_sais_pas_quand
        pas_encore_fixé pas_encore_fixée pas_encore_décidé pas_encore_décidée pas_encore_clair pas_encore_tranché
        pas_encore_réglé pas_encore_réglée n'est_pas_clair pas_encore_dit pas_encore_répondu reste_à_voir
        reste_à_déterminer reste_à_définir reste_à_fixer reste_ouverte reste_ouvert en_suspens je_me_demande
        nous_nous_demandons on_se_demande incertain incertaine à_définir à_déterminer à_clarifier à_préciser
        à_trancher à_voir_si tout_dépend_si dépend_de_savoir attendons_encore j'attends_encore attendons_toujours
        toujours_pas_de_réponse pas_sûr_que pas_sûre_que points_ouverts nadie_sabe nadie_puede_decir quién_sabe
        ni_idea no_tengo_idea no_sabemos no_se_sabe no_sé_si no_sé_quién no_sé_cuándo todavía_no_sabemos
        aún_no_sabemos todavía_no_se aún_no_se todavía_no_está aún_no_está todavía_no_hay aún_no_hay no_está_claro
        no_queda_claro está_por_ver queda_por_ver falta_por_saber falta_saber falta_por_decidir por_decidir
        por_definir por_aclarar por_determinar en_el_aire en_duda me_pregunto nos_preguntamos cabe_preguntarse
        incierto dudo_si depende_de_si sigue_sin_decidirse sigue_sin_estar sin_decidir sin_resolver sin_respuesta
        ne_nous_a_encore ne_m'a_encore nous_a_encore_dit nadie_nos_ha_dicho nadie_me_ha_dicho dicho_todavía dicho_aún
        esperamos_respuesta espero_respuesta no_estoy_seguro_de_si no_estoy_segura_de_si
    """,
    ClauseClass.CORRECTION: """
        on_closer_look on_closer_inspection on_second_look looking_again having_checked after_checking on_checking
        turns_out_i my_mix-up mix-up mixed_up i_confused i_mistook my_error my_fault i_was_mistaken i_am_mistaken
        i'm_mistaken i_got_it_wrong got_the_name_wrong got_that_wrong got_this_wrong wrong_earlier wrong_before
        i_misread i_mistyped i_miscounted i_misremembered i_miscalculated i_misunderstood i_mixed i_stand_corrected
        slip_of_the scrap_that scrap_what forget_what_i forget_that, disregard ignore_my_last ignore_my_previous
        ignore_what_i ignore_my_earlier strike_that hold_on, hang_on, oops whoops sorry,_my no,_i_mean i_mean_the
        correcting_myself let_me_correct to_correct erratum on_second_thought on_second_thoughts what_i_said_about
        what_i_wrote_about rather_than_what not_what_i_said not_what_i_meant meant_to_say meant_to_write should_read
        should_say ought_to_be was_supposed_to_be is_outdated no_longer_valid no_longer_applies bei_genauerem_hinsehen
        bei_näherem_hinsehen nach_prüfung noch_einmal_nachgesehen nachgesehen, vertan verwechselt mein_fehler
        mein_irrtum irrtum geirrt verlesen verschrieben verrechnet verzählt versprochen_habe vorhin_falsch
        falsch_geschrieben falsch_verstanden falsch_angegeben falsch_gesagt hatte_ich_falsch habe_ich_falsch
        vergiss_den vergiss_die vergiss_das vergessen_sie_den vergessen_sie_die vergessen_sie_das vergessen_sie,_was
        vergiss,_was halt, warte, richtig_ist richtig_wäre richtig_muss korrekt_ist korrekt_wäre gilt_nicht_mehr
        nicht_mehr_gültig ist_überholt nehme_ich_zurück nehme_zurück ich_meine_natürlich gemeint_ist gemeint_habe_ich
        ich_korrigiere korrigiere_mich à_bien_y_regarder vérification_faite après_vérification en_y_regardant
        me_suis_trompé me_suis_trompée nous_sommes_trompés je_me_trompe trompé_de trompée_de mal_écrit mal_compris
        mal_lu mal_noté mal_dit confondu oubliez_ce_que oublie_ce_que oubliez_le oubliez_la ne_tenez_pas_compte
        ignorez_mon ignorez_ce je_rectifie je_corrige je_me_corrige la_bonne_date la_bonne_heure le_bon_chiffre
        la_bonne_réponse je_retire c'était_plutôt n'est_plus_valable n'est_plus_d'actualité non_pas mirándolo_mejor
        mirándolo_bien tras_revisarlo revisándolo resulta_que_me me_equivoqué nos_equivocamos me_he_equivocado
        equivoqué_de me_confundí he_confundido me_he_confundido fallo_mío error_mío mi_error culpa_mía escribí_mal
        leí_mal entendí_mal dije_mal anoté_mal olvida_lo olvide_lo olviden_lo olvida_el olvida_la olvide_el olvide_la
        ignora_lo ignora_mi lo_correcto_es lo_correcto la_correcta_es el_correcto_es corrijo me_corrijo rectifico
        rectificación fe_de_erratas espera, espere, ya_no_vale ya_no_es_válido ya_no_es_válida queda_anulado
        quería_decir
    """,
}
CJK_PHRASES: dict[ClauseClass, str] = {
    ClauseClass.CONSTRAINT: """
        不准 不该 不应 不宜 无权 不得不 本人签 千万 绝对不 一律 无论如何 不管怎样 不惜 保密 机密 半个字 都得 都要
        需要两 需经 须经 须先 先经过 先问 先跟 先征得 征得 未经 没有许可 没经过 除非 才可以 才行 不晚于 最晚 最迟
        不早于 最早 不少于 不多于 不低于 不高于 吃不了 不能吃 不吃 忌口 吃素 素食 糖尿病 乳糖 麸质 清真 请去掉 请避免
        避免 不可超 禁用 禁忌 规定 要求是 强制 记得 记住 注意不 确保 保证不 不要把 止步 直到另行通知 なければなり
        本人が しなくては だめです だめだ ダメ 触らない 漏らさない 漏らすな 言わない 話さない 見せない 送らない
        使わない 消さない 変えない 渡さない ないように ないでほしい ないで下さい ないでね ないで。 せません 許されま
        認めません 認められま 許可が 承認が 同意が 了承が 署名が 要ります 必要です 必要がある 決まりです 規則です
        ルールです 方針です 条件です 前提です 場合に限 に限り に限る を通して まずは私に 事前に 先に確認 内密 極秘
        秘密に 口外 例外なく 何があっても 絶対 までには 遅くとも 早くても 食べられま 食べられない 飲めません
        苦手なので 菜食 ベジタリアン ヴィーガン グルテン ハラール 外してください 除いてください 控えて 避けて 守って
        忘れずに 忘れないで 注意して 気をつけて 義務 強制
    """,
    ClauseClass.DECISION: """
        还是留 还是用 还是按 还是选 还是去 还是改 我们还是 那就选 那就用 那就周 那就按 那就这 就这么 就这样定 就选
        就定在 选中 挑了 挑中 选用 采用了 我们用了 最终用 最终选 最终采 通过： 全票 一致通过 一致同意 表决 投票决
        拍了板 说定 讲定 谈妥 说好了 中标 批准了 获批 否决 放弃了 不再考虑 改用 维持原 ままにします ことになりました
        でいきましょう でいきます に落ち着 で落ち着 ということで に決定 可決 否決 満場一致 全会一致 多数決
        使うことにな 選びました 選んだ 選ばれ 採用 採択 に絞 決着 了承しまし 了承され 承認され 却下 見送 取りやめ
        に変更します 任命
    """,
    ClauseClass.COMMITMENT: """
        交给我 包在我 由我来 由我们 我的团队来 我们来做 我来做 我来办 我来处理 我来安排 我来联系 我一定 我们一定
        一定放 一定送 一定给 说到做到 放心吧 您放心 您会收到 你会收到 前我把 前我会 前给您 前给你 前发给 今晚就 明天就
        这就去 马上就去 我去办 我打电话 我给您 我给你 我答应 答应您 我发誓 负责到底 会按时 会准时 任せて お任せ
        引き受け 承り 承知しました やっておき 置いておき しておきます お知らせし 知らせます 発送し 郵送し 電話します
        お電話し メールします 返事します お返事し 伺います 参ります 届けます 仕上げ 片付けます 担当します 手配し
        準備します 間に合わせ お渡しし 調べます 確認します 送付し 送信し お持ちし
    """,
    ClauseClass.OPEN_QUESTION: """
        谁也说不 谁也不知 谁也不清 不清楚 不知道谁 不知道什么 不知道怎么 不知道是 不知道能 不知道会 不知道要 不知道保
        不知道该 还不知道 还没定 还没有定 没定下来 还没说 没人告诉 没有着落 没着落 再说吧 还得看 还要看 还得再看
        再看情况 待商 待议 待讨论 悬而未 悬着 说不准 说不好 拿不准 没想好 还在考虑 还在讨论 尚不 尚未 有待 没有答复
        还没答复 没回复我 等答复 等回复 取决于 未知数 存疑 想知道 誰にも言えません 誰にも分か 誰も知り
        分かっていません 分かりません わかりません わかっていません 分からない わからない 未定 決まっていません
        決まっていない 決めていません 聞いていません 聞いていない 宙に浮 気になって これからの話 これから決 検討中
        保留 協議中 返事待ち 返答待ち 回答待ち かどうかは かどうか、 かどうかまだ 次第です 不明 はっきりしま
        はっきりして 疑問 未回答 迷って
    """,
    ClauseClass.CORRECTION: """
        仔细一看 核对了一下 再看了一遍 记错 写错 看错 听错 搞错 弄错 说错 算错 数错 打错 搞混 弄混 混淆 口误 笔误 作废
        不算数 收回 当我没说 刚才说的 才对 才是对 正确的是 准确地说 确切地说 等一下， 忽略我 请忽略 以这个为准
        以此为准 有误 よく見たら 見直したら 確認したら 調べ直したら 間違い 間違え 勘違い 記憶違い 思い違い 見間違
        聞き間違 書き間違 打ち間違 計算違 誤り 誤記 誤字 取り消し 撤回 忘れてください 無視してください が正解 が正しい
        失礼、 失礼しました、 お詫びして 改めます 訂正し でなく、 じゃなくて、 じゃなく、 ではなく、 ではなくて
    """,
}
